import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually, freePort, spawnProcess } from '@weir/testkit';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import type { NodeAddress } from '../propagation/topology.ts';
import { REPOSITORY_ROOT } from '../report/run-metadata.ts';

export type ProxyProcesses = AsyncDisposable & {
  /** What all of them have in `weir_table_propagation_seconds`, each. */
  propagationTotals(): Promise<readonly PropagationTotals[]>;
};

export type PropagationTotals = { readonly count: number; readonly sumSeconds: number };
const PROXY_SOURCE = fileURLToPath(new URL('../../../packages/proxy/src/main.ts', import.meta.url));
const PROXIES_READY_TIMEOUT_MS = 120_000;

export type ProxyProcessesOptions = {
  readonly redis: string;
  readonly fleet: string;
  readonly nodes: readonly NodeAddress[];
  /** Where they write CPU profiles. */
  readonly profile?: string | undefined;
};

/** A process of one worker for each node; resolves when all of them serve. */
export async function startProxies({ redis, fleet, nodes, profile }: ProxyProcessesOptions): Promise<ProxyProcesses> {
  await using cleanup = new AsyncDisposableStack();
  const admins: string[] = [];
  for (const { name } of nodes) {
    const admin = `127.0.0.1:${await freePort()}`;
    const profiling = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`];
    cleanup.use(
      await spawnProcess({
        command: process.execPath,
        args: ['--conditions=source', ...profiling, PROXY_SOURCE],
        env: {
          ...process.env,
          WEIR_FLEET: fleet,
          WEIR_REDIS_URL: redis,
          WEIR_NODE: name,
          WEIR_WORKERS: '1',
          WEIR_ADMIN: admin,
          WEIR_LOG_LEVEL: 'error',
        },
        name: `proxy ${name}`,
        mayExit: true,
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
    if (found === undefined) throw new Error(`a proxy does not tell weir_table_propagation_seconds_${series}`);
    return Number(found);
  };
  return { count: value('count'), sumSeconds: value('sum') };
}

export type ServingProxy = AsyncDisposable & {
  readonly pid: number;
  readonly admin: string;
  /** From the start of the process until it said that each listener of its first table is open at all workers. */
  readonly servingMs: number;
};

export type ServingProxyOptions = {
  readonly program: string;
  readonly redis: string;
  readonly fleet: string;
  readonly node: string;
  readonly workers: number;
  /** Where it writes CPU profiles. */
  readonly profile?: string | undefined;
};

const PROXY_SERVING_TIMEOUT_MS = 120_000;

export async function startProxyUntilServing(options: ServingProxyOptions): Promise<ServingProxy> {
  const { program, redis, fleet, node, workers, profile } = options;
  const admin = `127.0.0.1:${await freePort()}`;
  const profiling = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`];
  const beganAt = monotonicMs();
  const proxy = await spawnProcess({
    command: process.execPath,
    args: [...profiling, program],
    env: {
      ...process.env,
      WEIR_FLEET: fleet,
      WEIR_REDIS_URL: redis,
      WEIR_NODE: node,
      WEIR_WORKERS: String(workers),
      WEIR_ADMIN: admin,
      WEIR_LOG_LEVEL: 'info',
    },
    name: `proxy ${node}`,
    readyWhen: /the first table is served/,
    readyTimeoutMs: PROXY_SERVING_TIMEOUT_MS,
    mayExit: true,
  });
  const servingMs = monotonicMs() - beganAt;
  return { pid: proxy.pid, admin, servingMs, [Symbol.asyncDispose]: () => proxy.close() };
}

/** As in the images: from what `tsc` has written, which it writes now. Returns the program. */
export async function compileProxy(): Promise<string> {
  const tsc = join(REPOSITORY_ROOT, 'node_modules/typescript/bin/tsc');
  const compiler = spawn(process.execPath, [tsc, '-b', 'packages/proxy'], {
    cwd: REPOSITORY_ROOT,
    stdio: ['ignore', 2, 2],
  });
  const [code] = await once(compiler, 'exit');
  if (code !== 0) throw new Error('the proxy does not compile');
  return join(REPOSITORY_ROOT, 'packages/proxy/dist/src/main.js');
}
