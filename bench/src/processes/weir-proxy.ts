import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually, freePort, spawnProcess } from '@weir/testkit';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import { REPOSITORY_ROOT } from '../report/run-metadata.ts';
import { compileWeir } from './compile.ts';

export type ProxyProcesses = AsyncDisposable & {
  /** Reads the metric `weir_table_propagation_seconds` of each proxy. */
  propagationTotals(): Promise<readonly PropagationTotals[]>;
};

export type PropagationTotals = { readonly count: number; readonly sumSeconds: number };
const PROXY_SOURCE = fileURLToPath(new URL('../../../packages/proxy/src/main.ts', import.meta.url));
const PROXIES_READY_TIMEOUT_MS = 120_000;

export type ProxyProcessesOptions = {
  readonly redis: string;
  readonly fleet: string;
  readonly nodes: readonly { readonly name: string }[];
  /** Where the proxies write CPU profiles. */
  readonly profileDirectory?: string | undefined;
};

/** Starts one proxy for each node, each with one worker. Resolves when all proxies are ready. */
export async function startProxies({
  redis,
  fleet,
  nodes,
  profileDirectory,
}: ProxyProcessesOptions): Promise<ProxyProcesses> {
  await using cleanup = new AsyncDisposableStack();
  const admins: string[] = [];
  for (const { name } of nodes) {
    const admin = `127.0.0.1:${await freePort()}`;
    cleanup.use(
      await spawnProxy({
        args: ['--conditions=source', ...profilingFlags(profileDirectory), PROXY_SOURCE],
        ...{ redis, fleet, node: name, workers: 1, admin, logLevel: 'error' },
      }),
    );
    admins.push(admin);
  }
  for (const admin of admins) {
    await eventually(() => assertReady(admin), { timeoutMs: PROXIES_READY_TIMEOUT_MS, intervalMs: 100 });
  }
  const started = cleanup.move();
  return {
    propagationTotals: () => Promise.all(admins.map(readPropagationTotals)),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

async function assertReady(admin: string): Promise<void> {
  const response = await fetch(`http://${admin}/readyz`);
  if (!response.ok) throw new Error(`a proxy is not ready: ${(await response.text()).slice(0, 500)}`);
}

async function readPropagationTotals(admin: string): Promise<PropagationTotals> {
  const text = await (await fetch(`http://${admin}/metrics`)).text();
  const value = (series: string): number => {
    const [, found] = new RegExp(`^weir_table_propagation_seconds_${series} (\\S+)$`, 'm').exec(text) ?? [];
    if (found === undefined) throw new Error(`a proxy has no metric weir_table_propagation_seconds_${series}`);
    return Number(found);
  };
  return { count: value('count'), sumSeconds: value('sum') };
}

export type ServingProxy = AsyncDisposable & {
  readonly pid: number;
  readonly admin: string;
  /** Time from the start of the process until the proxy logs that the listeners of its first table are open in all workers. */
  readonly servingMs: number;
};

export type ServingProxyOptions = {
  readonly program: string;
  readonly redis: string;
  readonly fleet: string;
  readonly node: string;
  readonly workers: number;
  /** Address of the admin server. Default: 127.0.0.1. */
  readonly adminHost?: string;
  /** Where the proxy writes CPU profiles. */
  readonly profileDirectory?: string | undefined;
};

const PROXY_SERVING_TIMEOUT_MS = 120_000;

export async function startProxyUntilServing(options: ServingProxyOptions): Promise<ServingProxy> {
  const { program, redis, fleet, node, workers, adminHost = '127.0.0.1', profileDirectory } = options;
  const admin = `${adminHost}:${await freePort()}`;
  const startedAt = monotonicMs();
  const proxy = await spawnProxy({
    args: [...profilingFlags(profileDirectory), program],
    ...{ redis, fleet, node, workers, admin, logLevel: 'info' },
    readyWhen: /the first routing table is in effect/,
    readyTimeoutMs: PROXY_SERVING_TIMEOUT_MS,
  });
  const servingMs = monotonicMs() - startedAt;
  return { pid: proxy.pid, admin, servingMs, [Symbol.asyncDispose]: () => proxy.close() };
}

type ProxyProcessOptions = {
  readonly args: readonly string[];
  readonly redis: string;
  readonly fleet: string;
  readonly node: string;
  readonly workers: number;
  readonly admin: string;
  readonly logLevel: string;
  readonly readyWhen?: RegExp;
  readonly readyTimeoutMs?: number;
};

function spawnProxy({ args, redis, fleet, node, workers, admin, logLevel, ...ready }: ProxyProcessOptions) {
  return spawnProcess({
    command: process.execPath,
    args: [...args],
    env: {
      ...process.env,
      WEIR_FLEET: fleet,
      WEIR_REDIS_URL: redis,
      WEIR_NODE: node,
      WEIR_WORKERS: String(workers),
      WEIR_ADMIN: admin,
      WEIR_LOG_LEVEL: logLevel,
    },
    name: `proxy ${node}`,
    mayExit: true,
    ...ready,
  });
}

function profilingFlags(directory: string | undefined): string[] {
  return directory === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${directory}`];
}

/** Compiles the proxy in the same way as for the images, and returns the path of the program. */
export async function compileProxy(): Promise<string> {
  await compileWeir(['proxy']);
  return join(REPOSITORY_ROOT, 'packages/proxy/dist/src/main.js');
}
