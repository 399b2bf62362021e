import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually, freePort, type SpawnedProcess, spawnProcess, temporaryDirectory } from '@weir/testkit';
import {
  type ControlPlane,
  type Redis,
  type RedisOptions,
  startControlPlane,
  startRedis,
  waitForCustomResources,
} from '@weir/tools';
import { API_SERVER_ADDRESS, NODES, type NodeName, nodeAddress, nodeAddress6, SERVICE_CIDRS } from './addresses.ts';

// Runs a complete fleet as processes: API server, Redis, controller, three proxies and console. Only the kubelets are missing.
export interface Fleet extends AsyncDisposable {
  readonly cluster: ControlPlane;
  readonly redis: Redis;
  readonly consoleUrl: string;
  /** Runs the `weir` command against this fleet and returns its stdout. */
  weir(...args: string[]): Promise<string>;
  /** Runs the `weir` command with `--local` for the proxy of a node, without the URL of the console, and returns its stdout. */
  weirOnNode(node: NodeName, ...args: string[]): Promise<string>;
  /** Returns the problems that `weir get problems` prints. */
  problems(): Promise<readonly FleetProblem[]>;
  /** Restarts the controller, and waits until the new controller leads. `settings`, if given, replaces its settings. */
  restartController(settings?: ControllerSettings): Promise<void>;
  /** Stops the controller with SIGTERM, and asserts that the controller has released its Lease. */
  stopController(): Promise<void>;
  /** Kills the controller with SIGKILL. */
  killController(): Promise<void>;
  /** Starts the controller, and waits until the controller leads. */
  startController(): Promise<void>;
  restartProxy(node: NodeName): Promise<void>;
  /** Kills the proxy with SIGKILL, which has the effect of a power failure. */
  killProxy(node: NodeName): Promise<void>;
  startProxy(node: NodeName): Promise<void>;
  /** Returns the running process of a part of the fleet, or the last process if the part has stopped. */
  processOf(part: FleetProcess): SpawnedProcess;
  /** Starts a part that has stopped, with additional environment variables. */
  start(part: FleetProcess, environment?: Environment): Promise<void>;
  /** Restarts the controller or the console from the sources of another checkout. */
  restartFromCheckout(checkout: string, part: 'controller' | 'console'): Promise<void>;
  /**
   * Upgrades a proxy. Starts the new proxy next to the old proxy, sends SIGTERM to the old proxy when the new proxy is ready, and returns
   * the old process while that process drains.
   */
  replaceProxyFromCheckout(checkout: string, node: NodeName): Promise<SpawnedProcess>;
  /** Returns the root folder of the checkout from which a part of the fleet runs. */
  checkoutOf(part: FleetProcess): string;
  /** Runs the `weir` command of another checkout. */
  weirFromCheckout(checkout: string, ...args: string[]): Promise<string>;
  /** Returns the last output of each process, also of processes that have stopped, for the report of a failing test. */
  output(): string;
  close(): Promise<void>;
}

export interface FleetProblem {
  readonly code: string;
  readonly subject: string;
  readonly message: string;
}

type Environment = Readonly<Record<string, string>>;
type ControllerSettings = Environment;

export interface FleetOptions {
  /** Additional environment variables of the controller. */
  readonly settings?: ControllerSettings;
  /** Whether to install the CRDs at the start. If false, the CRDs are missing until `applyCustomResources`. */
  readonly customResources?: boolean;
  /** Whether nodes and Services get addresses of both IP families. */
  readonly dualStack?: boolean;
  /** The folder of the checkout from which all processes start. Default: this checkout. */
  readonly checkout?: string;
  readonly redis?: RedisOptions;
  /** Returns additional environment variables of the proxy of a node. */
  readonly proxySettings?: (node: NodeName, redis: Redis) => Environment;
}

/** The root folder of this checkout. */
export const CHECKOUT: string = fileURLToPath(new URL('../../', import.meta.url));
export type FleetProcess = 'controller' | 'console' | NodeName;

export async function startFleet(options: FleetOptions = {}): Promise<Fleet> {
  const { customResources = true, dualStack = false, checkout = CHECKOUT, proxySettings } = options;
  let { settings = {} } = options;
  const state = temporaryDirectory('fleet');
  const networks = dualStack ? { serviceCidrs: SERVICE_CIDRS } : {};
  const [cluster, redis] = await Promise.all([
    startControlPlane({ host: API_SERVER_ADDRESS, ...networks }),
    startRedis(options.redis),
  ]);
  const addressesOf = (name: NodeName): string[] =>
    dualStack ? [nodeAddress(name), nodeAddress6(name)] : [nodeAddress(name)];
  await Promise.all([
    customResources && applyCustomResources(cluster),
    ...NODES.map((name) => addNode(cluster, name, addressesOf(name))),
  ]);
  // Publishes each Service on all nodes, because the tests' clients connect to all three. The default is two nodes.
  writeFileSync(join(state.path, 'default-policy.yaml'), `nodesPerService: ${NODES.length}\nmaxNodesPerService: 16\n`);
  const running = new Map<FleetProcess, SpawnedProcess>();
  const all: (readonly [FleetProcess, SpawnedProcess])[] = [];
  const checkouts = new Map<FleetProcess, string>();
  const consoleAddress = `127.0.0.1:${await freePort()}`;
  const common = {
    WEIR_FLEET: 'e2e',
    WEIR_REDIS_URL: redis.url,
    WEIR_LOG_LEVEL: 'info',
    WEIR_FLEET_SECRET: 'a secret that only this test fleet has',
    KUBECONFIG: cluster.kubeconfig,
  };
  const start = async (
    part: FleetProcess,
    adminPort: number,
    environment: Environment = {},
  ): Promise<SpawnedProcess> => {
    const adminAddress = `127.0.0.1:${adminPort}`;
    const source = checkouts.get(part) ?? checkout;
    const ofProxy = part === 'controller' || part === 'console' ? {} : proxySettings?.(part, redis);
    const process = await startProcess(part, {
      common,
      consoleAddress,
      adminAddress,
      state: state.path,
      settings,
      checkout: source,
      environment: { ...ofProxy, ...environment },
    });
    running.set(part, process);
    all.push([part, process]);
    return process;
  };
  const stop = async (part: FleetProcess): Promise<void> => {
    const process = running.get(part);
    const exit = await process?.stop('SIGTERM');
    // A process that fails while it closes would leave its work to the next process, which then waits or repeats the work.
    assert.ok(!exit?.code, `${part} exited with code ${exit?.code} after SIGTERM:\n${process?.output()}`);
  };
  // Waits for the election, so that a slow start does not use up the timeouts of the tests.
  const startLeader = async (): Promise<void> => {
    const controller = await start('controller', await freePort());
    await controller.waitForOutput(/"msg":"elected"/, { timeoutMs: 60_000 });
  };
  const stopLeader = async (): Promise<void> => {
    await stop('controller');
    // Otherwise the next controller would lead only after 15 s.
    assert.equal(await leaseHolder(cluster), '', `the Lease is not released:\n${running.get('controller')?.output()}`);
  };
  const restart = async (part: FleetProcess): Promise<void> => {
    await stop(part);
    await start(part, await freePort());
  };
  for (const part of ['controller', ...NODES, 'console'] as const) await start(part, await freePort());
  const close = async (): Promise<void> => {
    await Promise.all(all.map(([, process]) => process.stop('SIGKILL')));
    await Promise.all([redis.close(), cluster.close()]);
    await state.close();
  };
  return {
    cluster,
    redis,
    consoleUrl: `http://${consoleAddress}`,
    weir: (...args) => runWeir(args, { server: `http://${consoleAddress}` }),
    weirOnNode: (node, ...args) =>
      runWeir([...args, '--local', '--state', join(state.path, node)], { server: UNUSED_SERVER }),
    weirFromCheckout: (checkout, ...args) => runWeir(args, { server: `http://${consoleAddress}`, checkout }),
    async problems() {
      const text = await runWeir(['get', 'problems', '-o', 'json'], {
        server: `http://${consoleAddress}`,
        acceptedExitCode: PROBLEM_FOUND,
      });
      return (JSON.parse(text) as { items: readonly FleetProblem[] }).items;
    },
    async restartController(change) {
      settings = change ?? settings;
      await stopLeader();
      await startLeader();
    },
    stopController: stopLeader,
    killController: async () => void (await running.get('controller')?.stop('SIGKILL')),
    startController: startLeader,
    restartProxy: restart,
    killProxy: async (node) => void (await running.get(node)?.stop('SIGKILL')),
    startProxy: async (node) => void (await start(node, await freePort())),
    processOf(part) {
      const process = running.get(part);
      assert.ok(process !== undefined, `${part} has never started`);
      return process;
    },
    start: async (part, environment) => void (await start(part, await freePort(), environment)),
    restartFromCheckout(from, part) {
      checkouts.set(part, from);
      return restart(part);
    },
    async replaceProxyFromCheckout(from, node) {
      const old = running.get(node);
      assert.ok(old !== undefined, `${node} has no proxy`);
      checkouts.set(node, from);
      const port = await freePort();
      await start(node, port);
      await eventually(() => assertReady(port), { timeoutMs: 60_000, intervalMs: 100 });
      old.signal('SIGTERM');
      return old;
    },
    checkoutOf: (part) => checkouts.get(part) ?? checkout,
    output: () => all.map(([part, process]) => `── ${part}\n${process.output().slice(-4000)}`).join('\n'),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Returns the holder of the controller's Lease, or an empty text if the Lease is released. */
function leaseHolder({ kubectl }: ControlPlane): Promise<string> {
  const lease = ['lease', 'weir-controller-e2e', '-n', 'kube-system'];
  return kubectl('get', ...lease, '-o', 'jsonpath={.spec.holderIdentity}');
}

/** Creates a Node object. No kubelet belongs to the node. */
async function addNode({ kubectl, apply }: ControlPlane, name: NodeName, addresses: readonly string[]): Promise<void> {
  await apply({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { role: 'loadbalancer' } } });
  const status = { addresses: addresses.map((address) => ({ type: 'InternalIP', address })) };
  await kubectl('patch', 'node', name, '--subresource=status', '-p', JSON.stringify({ status }));
}

interface ProcessOptions {
  readonly common: Readonly<Record<string, string>>;
  readonly consoleAddress: string;
  readonly adminAddress: string;
  readonly state: string;
  readonly settings: ControllerSettings;
  readonly checkout: string;
  /** Environment variables that override all others. */
  readonly environment: Environment;
}

function startProcess(
  part: FleetProcess,
  { common, consoleAddress, adminAddress, state, settings, checkout, environment }: ProcessOptions,
): Promise<SpawnedProcess> {
  const folder = part === 'controller' || part === 'console' ? part : 'proxy';
  const own: Record<FleetProcess, Readonly<Record<string, string>>> = {
    controller: {
      WEIR_CLASSLESS: 'true',
      WEIR_NAMESPACE: 'kube-system',
      WEIR_ADMIN: adminAddress,
      WEIR_DEFAULT_TENANT_POLICY: join(state, 'default-policy.yaml'),
      WEIR_SERVICE_CIDRS: SERVICE_CIDRS.join(','),
      ...settings,
    },
    console: { WEIR_CONSOLE: consoleAddress },
    'node-1': proxyEnvironment('node-1', adminAddress, state),
    'node-2': proxyEnvironment('node-2', adminAddress, state),
    'node-3': proxyEnvironment('node-3', adminAddress, state),
  };
  return spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', join(checkout, 'packages', folder, 'src/main.ts')],
    env: { ...process.env, ...common, ...own[part], ...environment },
    name: part,
  });
}

function proxyEnvironment(node: NodeName, admin: string, state: string): Record<string, string> {
  return { WEIR_NODE: node, WEIR_WORKERS: '1', WEIR_ADMIN: admin, WEIR_STATE: `${state}/${node}` };
}

async function assertReady(adminPort: number): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/readyz`);
  assert.equal(response.status, 200, await response.text());
}

const PROBLEM_FOUND = 1;
/** Nothing listens there, so that a command that should not use the console fails. */
const UNUSED_SERVER = 'http://127.0.0.1:1';

interface RunWeirOptions {
  readonly server: string;
  readonly checkout?: string;
  readonly acceptedExitCode?: number;
}

async function runWeir(
  args: readonly string[],
  { server, checkout = CHECKOUT, acceptedExitCode = 0 }: RunWeirOptions,
): Promise<string> {
  const command = await spawnProcess({
    command: process.execPath,
    args: [join(checkout, 'packages/cli/bin/weir.js'), ...args],
    env: { ...process.env, WEIR_SERVER: server },
    name: `weir ${args.join(' ')}`,
    mayExit: true,
  });
  const { code } = await command.exited;
  if (code !== 0 && code !== acceptedExitCode)
    throw new Error(`weir ${args.join(' ')} exited with code ${code}: ${command.output()}`);
  return command.stdout();
}

const DEFINITIONS_FOLDER = fileURLToPath(new URL('../../charts/weir-crds/definitions/', import.meta.url));

/** Applies the CRDs of the chart and waits until they are established. */
export async function applyCustomResources({ kubectl }: ControlPlane): Promise<void> {
  await kubectl('apply', '-f', DEFINITIONS_FOLDER);
  await waitForCustomResources({ kubectl });
}
