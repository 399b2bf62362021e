import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Exit, freePort, type SpawnedProcess, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { collectGarbage, inspectorIn } from '../measure/collect-garbage.ts';
import { residentKiB } from '../measure/resident-memory.ts';
import { all, writeWhole } from './disturbances.ts';
import { Inspector } from './inspector.ts';
import { type MallocBytes, mallocBytes } from './malloc.ts';
import { manifestFor, policyManifest } from './manifests.ts';
import { type OpenFiles, openFiles } from './open-files.ts';
import { trustedNetwork } from './population.ts';
import { findProxy, type SelfView } from './proxy-self-view.ts';
import type { Random } from './random.ts';
import type { AtRest, Metered } from './reading.ts';
import { type ResidentKinds, residentKinds } from './resident-kinds.ts';
import { type ServiceName, serviceNames } from './services.ts';

/** As docs/operating.md advises: what malloc has free it gives back, and what is resident says more of what is in use. */
const trimming = { MALLOC_TRIM_THRESHOLD_: '262144' };
const program = fileURLToPath(new URL('../../../packages/cli/src/main.ts', import.meta.url));

export type Weir = AsyncDisposable & {
  readonly directory: string;
  readonly ports: Readonly<Record<ServiceName, number>>;
  readonly process: SpawnedProcess;
  view(): Promise<SelfView>;
  ledger(): Promise<Readonly<Partial<Record<string, Metered>>>>;
  openFiles(): OpenFiles;
  mallocBytes(): Promise<MallocBytes>;
  residentKiB(): number;
  residentKinds(): ResidentKinds;
  collectGarbage(): Promise<void>;
  heapBytes(): Promise<AtRest['heapBytes']>;
  suspend(): Promise<void>;
  resume(): Promise<void>;
  endWorker(random: Random): Promise<void>;
  /** SIGTERM. A process whose inspector somebody looks at does not end, so from here on nothing can be asked of it. */
  stop(): Promise<Exit>;
};

export async function startWeir(
  targets: Readonly<Record<ServiceName, number>>,
  { workers }: { readonly workers: number },
): Promise<Weir> {
  await using cleanup = new AsyncDisposableStack();
  const { path } = cleanup.use(temporaryDirectory('soak'));
  const [directory, state] = [join(path, 'manifests'), join(path, 'state')];
  for (const each of [directory, state]) mkdirSync(each);
  const ports = {} as Record<ServiceName, number>;
  for (const name of serviceNames) ports[name] = await freePort();
  writeWhole(join(directory, 'policy.yaml'), policyManifest);
  for (const name of serviceNames) {
    const text = manifestFor(name, { port: ports[name], target: targets[name], ready: all(name) });
    writeWhole(join(directory, `${name}.yaml`), text);
  }
  // Malloc is asked through node:ffi, which is experimental.
  const quiet = '--disable-warning=ExperimentalWarning';
  const flags = ['--conditions=source', quiet, '--inspect=127.0.0.1:0', program, 'standalone'];
  const options = ['-f', directory, '--state', state, '--workers', String(workers), '--console', '127.0.0.1:0'];
  const weir = cleanup.use(
    await spawnProcess({
      command: process.execPath,
      args: [...flags, ...options, '--trust-proxy-protocol', trustedNetwork],
      env: { ...process.env, ...trimming },
      name: 'weir standalone',
      readyWhen: /\bready\b.*http:\/\/\S+/,
      readyTimeoutMs: 60_000,
      mayExit: true,
    }),
  );
  const [, console = ''] = /\bready\b.*?(http:\/\/[^\s"]+)/.exec(weir.output()) ?? [];
  const url = inspectorIn(weir.output());
  if (url === undefined) throw new Error('the inspector of the proxy did not say where it listens');
  const inspector = cleanup.use(await Inspector.connect(url));
  const view = await findProxy(inspector);
  const suspension = new Suspending(console);
  const started = cleanup.move();
  return {
    directory,
    ports,
    process: weir,
    view,
    ledger: () => readLedger(console),
    openFiles: () => openFiles(weir.pid),
    mallocBytes: () => mallocBytes(inspector, join(path, 'malloc.xml')),
    residentKiB: () => residentKiB(weir.pid),
    residentKinds: () => residentKinds(weir.pid),
    collectGarbage: () => collectGarbage(url),
    heapBytes: () => inspector.heapBytes(),
    suspend: () => suspension.begin(),
    resume: () => suspension.end(),
    async endWorker(random) {
      const expression = "setImmediate(() => { throw new Error('ended by the soak'); })";
      await inspector.callWorker(random.pick(inspector.workers), 'Runtime.evaluate', { expression });
    },
    stop() {
      inspector[Symbol.dispose]();
      return weir.stop();
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

class Suspending {
  readonly #console: string;
  #name: string | undefined;

  constructor(console: string) {
    this.#console = console;
  }

  async begin(): Promise<void> {
    const target = { type: 'Service', namespace: 'play', service: 'paused' };
    const body = JSON.stringify({ target, message: 'the soak pauses it' });
    const headers = { 'content-type': 'application/json' };
    const made = await ask(new URL('api/v1/suspensions', this.#console), { method: 'POST', headers, body });
    this.#name = (made as { readonly name: string }).name;
  }

  async end(): Promise<void> {
    if (this.#name === undefined) return;
    await ask(new URL(`api/v1/suspensions/${this.#name}`, this.#console), { method: 'DELETE' });
    this.#name = undefined;
  }
}

type UsageItem = { readonly services: readonly ({ readonly name: string } & Metered)[] };

async function readLedger(console: string): Promise<Record<string, Metered>> {
  const { items } = (await ask(new URL('api/v1/usage', console))) as { readonly items: readonly UsageItem[] };
  return Object.fromEntries(
    items.flatMap(({ services }) =>
      services.map(({ name, receivedBytes, sentBytes, connections }) => [
        name,
        { receivedBytes, sentBytes, connections },
      ]),
    ),
  );
}

async function ask(url: URL, init: RequestInit = {}): Promise<unknown> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(20_000) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return response.json();
}
