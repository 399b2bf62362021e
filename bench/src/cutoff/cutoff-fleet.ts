// A complete fleet as processes in a network namespace: etcd, kube-apiserver, Redis, controller, console, and proxies with one worker each.
// All programs of Weir are compiled, as in the images.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  eventually,
  freePort,
  type SpawnedProcess,
  spawnProcess,
  startTcpRelay,
  type TcpRelay,
  temporaryDirectory,
} from '@weir/testkit';
import { type ControlPlane, type Redis, startControlPlane, startRedis, waitForCustomResources } from '@weir/tools';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import { REPOSITORY_ROOT } from '../report/run-metadata.ts';
import { fleetObjects } from './fleet-objects.ts';
import { API_SERVER_ADDRESS, type BenchNode, ENDPOINT_NETWORK } from './topology.ts';

export type CutoffFleet = AsyncDisposable & {
  readonly nodes: readonly BenchNode[];
  readonly cluster: ControlPlane;
  readonly redis: Redis;
  /** The path from the last proxy to Redis. */
  readonly redisRelay: TcpRelay;
  /** Starts processes; resolves when they are ready. A proxy without Redis is ready with the table of its state directory. */
  start(...parts: readonly Part[]): Promise<void>;
  stop(...parts: readonly Part[]): Promise<void>;
  kill(...parts: readonly Part[]): Promise<void>;
  /** Runs the `weir` command with the URL of the console. */
  weir(...args: readonly string[]): Promise<CommandRun>;
  /** Runs the `weir` command with `--local` on a node. */
  weirOnNode(node: BenchNode, ...args: readonly string[]): Promise<CommandRun>;
  kubectl(...args: Parameters<ControlPlane['kubectl']>): Promise<CommandRun>;
};

/** The duration of a command. Times are of the machine's monotonic clock. */
export type CommandRun = { readonly startedAt: number; readonly endedAt: number };
/** A process of Weir: the controller, the console, or the proxy of the node with this name. */
export type Part = 'controller' | 'console' | `bench-${number}`;

const READY_TIMEOUT_MS = 120_000;
const FLEET_SECRET = 'a secret that only this benchmark has';
/** Nothing listens there, so that a command that should not use the console fails. */
const UNUSED_SERVER = 'http://127.0.0.1:1';
const CUSTOM_RESOURCES = join(REPOSITORY_ROOT, 'charts/weir-crds/definitions');

export async function startCutoffFleet(nodes: readonly BenchNode[]): Promise<CutoffFleet> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('cutoff'));
  const [cluster, redis] = await Promise.all([startControlPlane({ host: API_SERVER_ADDRESS }), startRedis()]);
  cleanup.use(cluster);
  cleanup.use(redis);
  const redisRelay = cleanup.use(await startTcpRelay(redis.port));
  await cluster.kubectl('apply', '-f', CUSTOM_RESOURCES);
  await waitForCustomResources(cluster);
  for (const object of fleetObjects(nodes)) await cluster.apply(object);
  for (const { name, address } of nodes) {
    const status = { addresses: [{ type: 'InternalIP', address }] };
    await cluster.kubectl('patch', 'node', name, '--subresource=status', '-p', JSON.stringify({ status }));
  }
  const policy = join(directory.path, 'default-policy.json');
  // the policy allows the endpoints, because the cluster has no pods that would make the endpoints trusted
  const limits = { nodesPerService: nodes.length, maxNodesPerService: nodes.length };
  writeFileSync(policy, JSON.stringify({ ...limits, allowedEndpointCIDRs: [ENDPOINT_NETWORK] }));
  const consoleAddress = `127.0.0.1:${await freePort()}`;
  const server = `http://${consoleAddress}`;
  const common = {
    WEIR_FLEET: 'cutoff',
    WEIR_REDIS_URL: redis.url,
    WEIR_LOG_LEVEL: 'error',
    WEIR_FLEET_SECRET: FLEET_SECRET,
    KUBECONFIG: cluster.kubeconfig,
  };
  const environmentOf = async (part: Part): Promise<Readonly<Record<string, string>>> => {
    if (part === 'console') return { WEIR_CONSOLE: consoleAddress };
    const admin = { WEIR_ADMIN: `127.0.0.1:${await freePort()}` };
    if (part === 'controller')
      return { ...admin, WEIR_NAMESPACE: 'kube-system', WEIR_DEFAULT_TENANT_POLICY: policy, WEIR_DRAIN: '0s' };
    const own = { ...admin, WEIR_NODE: part, WEIR_WORKERS: '1', WEIR_STATE: join(directory.path, part) };
    return part === nodes.at(-1)?.name ? { ...own, WEIR_REDIS_URL: `redis://127.0.0.1:${redisRelay.port}` } : own;
  };
  const processes = cleanup.use(new AsyncDisposableStack());
  const running = new Map<Part, SpawnedProcess>();
  const start = async (part: Part): Promise<void> => {
    const environment = await environmentOf(part);
    const folder = part === 'controller' || part === 'console' ? part : 'proxy';
    const process = processes.use(await spawnWeir(folder, [], { ...common, ...environment }));
    running.set(part, process);
    const ready = environment.WEIR_ADMIN === undefined ? `${server}/readyz` : `http://${environment.WEIR_ADMIN}/readyz`;
    await eventually(() => assertReady(ready, process), { timeoutMs: READY_TIMEOUT_MS, intervalMs: 50 });
  };
  const signalAll = (parts: readonly Part[], signal: NodeJS.Signals) =>
    Promise.all(parts.map((part) => running.get(part)?.stop(signal)));
  const runWeir = (args: readonly string[], weirServer: string): Promise<CommandRun> =>
    timed(async () => {
      const command = await spawnWeir('cli', args, { WEIR_SERVER: weirServer });
      const { code } = await command.exited;
      if (code !== 0) throw new Error(`weir ${args.join(' ')} exited with code ${code}: ${command.output()}`);
    });
  const started = cleanup.move();
  return {
    ...{ nodes, cluster, redis, redisRelay },
    start: async (...parts) => void (await Promise.all(parts.map(start))),
    stop: async (...parts) => void (await signalAll(parts, 'SIGTERM')),
    kill: async (...parts) => void (await signalAll(parts, 'SIGKILL')),
    weir: (...args) => runWeir(args, server),
    weirOnNode: ({ name }, ...args) =>
      runWeir([...args, '--local', '--state', join(directory.path, name)], UNUSED_SERVER),
    kubectl: (...args) => timed(() => cluster.kubectl(...args)),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

function spawnWeir(
  folder: 'controller' | 'console' | 'proxy' | 'cli',
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<SpawnedProcess> {
  return spawnProcess({
    command: process.execPath,
    args: [join(REPOSITORY_ROOT, 'packages', folder, 'dist/src/main.js'), ...args],
    env: { ...process.env, ...environment },
    name: `${folder} ${args.join(' ')}`.trim(),
    mayExit: true,
  });
}

async function timed(run: () => Promise<unknown>): Promise<CommandRun> {
  const startedAt = monotonicMs();
  await run();
  return { startedAt, endedAt: monotonicMs() };
}

async function assertReady(url: string, process: SpawnedProcess): Promise<void> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${(await response.text()).slice(0, 500)}\n${process.output().slice(-2_000)}`);
}
