import { freePort, spawnProcess } from '@weir/testkit';
import { monotonicMs } from '../control/same-time.ts';

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
