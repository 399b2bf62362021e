import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Exit, freePort, type SpawnedProcess, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { collectGarbage, Inspector, inspectorUrlIn } from '../measure/inspector.ts';
import { residentKiB } from '../measure/proc-stats.ts';
import type { TrafficTotals } from '../subjects/subject.ts';
import { endpointIndexes, writeAtomically } from './fault-injector.ts';
import { TRUSTED_NETWORK } from './load-generator.ts';
import {
  type DescriptorCounts,
  descriptorCounts,
  type MallocBytes,
  type ResidentKiBByKind,
  readMallocBytes,
  residentKiBByKind,
} from './process-resources.ts';
import { findProxyView, type ProxyView } from './proxy-view.ts';
import type { Random } from './random.ts';
import { POLICY_MANIFEST, SERVICE_NAMES, type ServiceName, soakServiceManifest } from './services.ts';
import type { ResourceUsage } from './soak-result.ts';

/** The setting of docs/kernel.md: malloc returns free memory to the kernel, so resident memory is closer to the memory in use. */
const MALLOC_ENVIRONMENT = { MALLOC_TRIM_THRESHOLD_: '262144' };
const WEIR_PROGRAM = fileURLToPath(new URL('../../../packages/cli/src/main.ts', import.meta.url));

export type StandaloneWeir = AsyncDisposable & {
  readonly directory: string;
  readonly ports: Readonly<Record<ServiceName, number>>;
  readonly process: SpawnedProcess;
  view(): Promise<ProxyView>;
  ledger(): Promise<Readonly<Partial<Record<string, TrafficTotals>>>>;
  descriptorCounts(): DescriptorCounts;
  mallocBytes(): Promise<MallocBytes>;
  residentKiB(): number;
  residentKiBByKind(): ResidentKiBByKind;
  collectGarbage(): Promise<void>;
  heapBytes(): Promise<ResourceUsage['heapBytes']>;
  suspend(): Promise<void>;
  resume(): Promise<void>;
  endWorker(random: Random): Promise<void>;
  /** Closes the inspector, because an open inspector keeps the process alive, and sends SIGTERM. */
  stop(): Promise<Exit>;
};

export async function startStandaloneWeir(
  targets: Readonly<Record<ServiceName, number>>,
  { workers }: { readonly workers: number },
): Promise<StandaloneWeir> {
  await using cleanup = new AsyncDisposableStack();
  const { path } = cleanup.use(temporaryDirectory('soak'));
  const [directory, state] = [join(path, 'manifests'), join(path, 'state')];
  for (const each of [directory, state]) mkdirSync(each);
  const ports = {} as Record<ServiceName, number>;
  for (const name of SERVICE_NAMES) ports[name] = await freePort();
  writeAtomically(join(directory, 'policy.yaml'), POLICY_MANIFEST);
  for (const name of SERVICE_NAMES) {
    const text = soakServiceManifest(name, { port: ports[name], target: targets[name], ready: endpointIndexes(name) });
    writeAtomically(join(directory, `${name}.yaml`), text);
  }
  // Node would warn about node:ffi, which calls malloc_info and is experimental
  const noWarning = '--disable-warning=ExperimentalWarning';
  const flags = ['--conditions=source', noWarning, '--inspect=127.0.0.1:0', WEIR_PROGRAM, 'standalone'];
  const options = ['-f', directory, '--state', state, '--workers', String(workers), '--console', '127.0.0.1:0'];
  const weir = cleanup.use(
    await spawnProcess({
      command: process.execPath,
      args: [...flags, ...options, '--trust-proxy-protocol', TRUSTED_NETWORK],
      env: { ...process.env, ...MALLOC_ENVIRONMENT },
      name: 'weir standalone',
      readyWhen: /\bready\b.*http:\/\/\S+/,
      readyTimeoutMs: 60_000,
      mayExit: true,
    }),
  );
  const [, console = ''] = /\bready\b.*?(http:\/\/[^\s"]+)/.exec(weir.output()) ?? [];
  const url = inspectorUrlIn(weir.output());
  if (url === undefined) throw new Error('the proxy printed no URL of its inspector');
  const inspector = cleanup.use(await Inspector.connect(url));
  const view = await findProxyView(inspector);
  const suspension = new SuspensionClient(console);
  const started = cleanup.move();
  return {
    directory,
    ports,
    process: weir,
    view,
    ledger: () => readServiceLedger(console),
    descriptorCounts: () => descriptorCounts(weir.pid),
    mallocBytes: () => readMallocBytes(inspector, join(path, 'malloc.xml')),
    residentKiB: () => residentKiB(weir.pid),
    residentKiBByKind: () => residentKiBByKind(weir.pid),
    collectGarbage: () => collectGarbage(url),
    heapBytes: () => inspector.heapBytes(),
    suspend: () => suspension.create(),
    resume: () => suspension.remove(),
    async endWorker(random) {
      const expression = "setImmediate(() => { throw new Error('crashed by the soak'); })";
      await inspector.callWorker(random.pick(inspector.workerSessions), 'Runtime.evaluate', { expression });
    },
    stop() {
      inspector[Symbol.dispose]();
      return weir.stop();
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

class SuspensionClient {
  readonly #console: string;
  #name: string | undefined;

  constructor(console: string) {
    this.#console = console;
  }

  async create(): Promise<void> {
    const target = { type: 'Service', namespace: 'play', service: 'suspended' };
    const body = JSON.stringify({ target, message: 'suspended by the soak' });
    const headers = { 'content-type': 'application/json' };
    const created = await requestJson(new URL('api/v1/suspensions', this.#console), { method: 'POST', headers, body });
    this.#name = (created as { readonly name: string }).name;
  }

  async remove(): Promise<void> {
    if (this.#name === undefined) return;
    await requestJson(new URL(`api/v1/suspensions/${this.#name}`, this.#console), { method: 'DELETE' });
    this.#name = undefined;
  }
}

type UsageItem = { readonly services: readonly ({ readonly name: string } & TrafficTotals)[] };

async function readServiceLedger(console: string): Promise<Record<string, TrafficTotals>> {
  const { items } = (await requestJson(new URL('api/v1/usage', console))) as { readonly items: readonly UsageItem[] };
  return Object.fromEntries(
    items.flatMap(({ services }) =>
      services.map(({ name, receivedBytes, sentBytes, connections }) => [
        name,
        { receivedBytes, sentBytes, connections },
      ]),
    ),
  );
}

async function requestJson(url: URL, init: RequestInit = {}): Promise<unknown> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(20_000) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return response.json();
}
