// The fleet of the fault suite: three proxies, a persistent Redis, one controller on a real API server, and the console. Five tenants: the
// bytes of `steady` are compared with the ledger, `few` and `rate` want more than their limits, `stopped` and `later` are suspended.
import { execFileSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { cpSync, globSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttp2Server } from 'node:http2';
import { dirname, join } from 'node:path';
import { eventually, httpBackend, temporaryDirectory } from '@weir/testkit';
import { programPath } from '@weir/tools';
import { ALL_ADDRESSES, NODES, type NodeName, nodeAddress, podAddress } from '../addresses.ts';
import { type Fleet, type FleetProcess, startFleet } from '../fleet.ts';
import { namespaceManifest, suspension, tenantPolicy } from '../manifests.ts';
import { Pods } from '../pods.ts';
import { addressesIn, waitForStatus } from '../service-status.ts';
import { connectTo, HTTP_BODY, PORTS, type Protocol } from './client-connections.ts';
import { CONNECTION_LIMIT, CONNECTION_LIMIT_PORT, RATE_LIMIT, RATE_LIMIT_PORT } from './limit-clients.ts';
import type { Bytes } from './steady-clients.ts';
import { LATER_PORT, STOPPED_PORT } from './suspension-clients.ts';

export const PROTOCOLS: readonly Protocol[] = ['tcp', 'http', 'h2', 'udp'];
/** The proxy of this node has its state directory on a small file system, and reaches Redis at an address of its own. */
export const FAULTY_NODE: NodeName = 'node-1';
export const OTHER_NODES: readonly NodeName[] = NODES.filter((node) => node !== FAULTY_NODE);
const REDIS_ADDRESS_OF_FAULTY_NODE = '10.250.0.31';
/** All addresses of the suite on `lo`. */
export const FAULT_ADDRESSES: readonly string[] = [...ALL_ADDRESSES, REDIS_ADDRESS_OF_FAULTY_NODE];
const STATE_FILE_SYSTEM_SIZE = '2m';

export interface FaultFleet extends AsyncDisposable {
  readonly fleet: Fleet;
  /** Returns the bytes in the ledger of each Service of the tenant `steady`. */
  ledger(): Promise<Readonly<Record<Protocol, Bytes>>>;
  /** Resolves when the proxies of these nodes are ready. */
  waitUntilReady(nodes: readonly NodeName[]): Promise<void>;
  /** Drops all packets between the proxy of `FAULTY_NODE` and Redis. */
  cutNetwork(): void;
  restoreNetwork(): void;
  /** Fills the file system with the state directory of `FAULTY_NODE`. */
  fillDisk(): void;
  freeDisk(): void;
  /** Copies the data of Redis. */
  copyRedis(): void;
  /** Restarts Redis with the copied data. */
  restoreRedis(): Promise<void>;
  /** Restarts a part so that its clock can be set, or with the clock of the host if `clock` is `real`. */
  restartWithClock(part: FleetProcess, clock: 'settable' | 'real'): Promise<void>;
  /** Sets the clock of the part that was restarted with a settable clock. `offset` is relative to the clock of the host. */
  setClock(offset: '+0' | '+1h' | '-1h'): void;
  close(): Promise<void>;
}

export async function startFaultFleet(): Promise<FaultFleet> {
  const directory = temporaryDirectory('faults');
  const stateOfFaultyNode = join(directory.path, 'state');
  mkdirSync(stateOfFaultyNode);
  execFileSync('/usr/bin/mount', ['-t', 'tmpfs', '-o', `size=${STATE_FILE_SYSTEM_SIZE}`, 'tmpfs', stateOfFaultyNode]);
  const redisData = join(directory.path, 'redis');
  const redisCopy = join(directory.path, 'redis-copy');
  const clockFile = join(directory.path, 'clock');
  const fleet = await startFleet({
    redis: { dir: redisData, settings: [`bind 127.0.0.1 ${REDIS_ADDRESS_OF_FAULTY_NODE}`, 'protected-mode no'] },
    proxySettings: (node, redis) => ({
      // The controller reaches this address, so that it can see that a proxy has ended.
      WEIR_ADMIN: `${nodeAddress(node)}:8687`,
      ...(node === FAULTY_NODE && {
        WEIR_STATE: stateOfFaultyNode,
        WEIR_REDIS_URL: `redis://${REDIS_ADDRESS_OF_FAULTY_NODE}:${redis.port}`,
      }),
    }),
  });
  const pods = new Pods(fleet.cluster);
  const backends = new AsyncDisposableStack();
  const filler = join(stateOfFaultyNode, 'filler');
  const setClock = (offset: string): void => writeFileSync(clockFile, `${offset}\n`);
  const waitUntilReady = async (nodes: readonly NodeName[]): Promise<void> => {
    for (const node of nodes) await eventually(() => assertReady(node), { timeoutMs: 90_000, intervalMs: 100 });
  };
  await addTenants(fleet, pods, backends);
  await waitUntilReady(NODES);
  await waitUntilFlushed(fleet);
  const close = async (): Promise<void> => {
    await backends.disposeAsync();
    await pods.close();
    await fleet.close();
    execFileSync('/usr/bin/umount', [stateOfFaultyNode]);
    await directory.close();
  };
  return {
    fleet,
    ledger: () => readLedger(fleet),
    waitUntilReady,
    cutNetwork() {
      const drop = ['daddr', 'saddr'].map(
        (end) => `add rule inet faults input ip ${end} ${REDIS_ADDRESS_OF_FAULTY_NODE} drop`,
      );
      const chain = 'add chain inet faults input { type filter hook input priority 0; }';
      runNft(['add table inet faults', chain, ...drop]);
    },
    restoreNetwork: () => runNft(['delete table inet faults']),
    fillDisk() {
      for (let bytes = 1024 * 1024; bytes >= 1; bytes = Math.floor(bytes / 2)) appendUntilFull(filler, bytes);
    },
    copyRedis: () => cpSync(redisData, redisCopy, { recursive: true }),
    async restoreRedis() {
      await fleet.redis.stop({ signal: 'SIGKILL' });
      rmSync(redisData, { recursive: true });
      renameSync(redisCopy, redisData);
      await fleet.redis.start();
    },
    freeDisk: () => rmSync(filler),
    async restartWithClock(part, clock) {
      setClock('+0');
      await fleet.processOf(part).stop('SIGKILL');
      await fleet.start(part, clock === 'real' ? {} : fakeClockEnvironment(clockFile));
    },
    setClock,
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function addTenants(fleet: Fleet, pods: Pods, backends: AsyncDisposableStack): Promise<void> {
  const { cluster } = fleet;
  const namespaces = ['steady', 'few', 'rate', 'stopped', 'later'];
  await cluster.apply(
    ...namespaces.map((name) => namespaceManifest(name, { team: name })),
    tenantPolicy('few', { limits: { connections: CONNECTION_LIMIT } }),
    tenantPolicy('rate', { limits: { newConnectionsPerSecond: RATE_LIMIT } }),
    ...PROTOCOLS.map((protocol) => service('steady', protocol, PORTS[protocol])),
    service('few', 'tcp', CONNECTION_LIMIT_PORT),
    service('rate', 'tcp', RATE_LIMIT_PORT),
    service('stopped', 'tcp', STOPPED_PORT),
    service('later', 'tcp', LATER_PORT),
    suspension('stopped', { target: { type: 'Tenant', tenant: 'stopped' }, message: 'Suspended by the fault suite.' }),
  );
  for (const [index, namespace] of namespaces.entries()) {
    const labels = { app: 'backend' };
    await pods.echo({ namespace, name: 'backend', labels, number: index + 1, port: PORTS.tcp });
  }
  await startBackends(podAddress(1), backends);
  const paths = PROTOCOLS.map((protocol) => `steady/${protocol}`);
  for (const path of [...paths, 'few/tcp', 'rate/tcp', 'stopped/tcp', 'later/tcp'])
    await waitForStatus(cluster, path, (now) => addressesIn(now).length === NODES.length);
  for (const protocol of PROTOCOLS) {
    for (const node of NODES) await eventually(() => exchangeOnce(protocol, node), { timeoutMs: 60_000 });
  }
}

async function exchangeOnce(protocol: Protocol, node: NodeName): Promise<void> {
  const connection = await connectTo[protocol](nodeAddress(node));
  await connection.exchange();
  await connection.end();
}

const APP_PROTOCOLS: Readonly<Record<Protocol, object>> = {
  tcp: {},
  udp: { protocol: 'UDP' },
  http: { appProtocol: 'http' },
  h2: { appProtocol: 'kubernetes.io/h2c' },
};

function service(namespace: string, protocol: Protocol, port: number): object {
  const targetPort = PORTS[protocol];
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name: protocol },
    spec: {
      type: 'LoadBalancer',
      selector: { app: 'backend' },
      ports: [{ port, targetPort, ...APP_PROTOCOLS[protocol] }],
    },
  };
}

/** Starts the backends of the pod that are no TCP echo. */
async function startBackends(host: string, stack: AsyncDisposableStack): Promise<void> {
  stack.use(await httpBackend({ host, port: PORTS.http, handler: (_, response) => void response.end(HTTP_BODY) }));
  const http2 = createHttp2Server((_, response) => void response.end(HTTP_BODY));
  const sessions = new Set<{ destroy(): void }>();
  http2.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    // The connection of a killed proxy is reset.
    session.on('error', () => undefined);
  });
  http2.listen({ host, port: PORTS.h2 });
  await once(http2, 'listening');
  stack.defer(() => {
    for (const session of sessions) session.destroy();
    http2.close();
  });
  const udp = createSocket('udp4');
  udp.on('message', (message, { port, address }) => udp.send(message, port, address));
  udp.bind(PORTS.udp, host);
  await once(udp, 'listening');
  stack.defer(() => void udp.close());
}

async function assertReady(node: NodeName): Promise<void> {
  const response = await fetch(`http://${nodeAddress(node)}:8687/readyz`, { signal: AbortSignal.timeout(5_000) });
  if (!response.ok) throw new Error(`the proxy of ${node} is not ready: ${await response.text()}`);
}

interface UsageItem {
  readonly tenant: string;
  readonly services: readonly {
    readonly name: string;
    readonly receivedBytes: number;
    readonly sentBytes: number;
  }[];
}

async function readLedger({ consoleUrl }: Fleet): Promise<Record<Protocol, Bytes>> {
  const response = await fetch(`${consoleUrl}/api/v1/usage`, { signal: AbortSignal.timeout(10_000) });
  if (!response.ok) throw new Error(`the console answered ${response.status}: ${await response.text()}`);
  const { items } = (await response.json()) as { readonly items: readonly UsageItem[] };
  const services = items.find(({ tenant }) => tenant === 'steady')?.services ?? [];
  const bytesOf = (protocol: Protocol): Bytes => {
    const found = services.find(({ name }) => name === protocol);
    // The clients send what the proxies receive.
    return { sent: found?.receivedBytes ?? 0, received: found?.sentBytes ?? 0 };
  };
  return { tcp: bytesOf('tcp'), udp: bytesOf('udp'), http: bytesOf('http'), h2: bytesOf('h2') };
}

/** Waits until the ledger contains the traffic of the preparations: until several flush intervals of 1 s have changed nothing. */
async function waitUntilFlushed(fleet: Fleet): Promise<void> {
  let last = '';
  await eventually(
    async () => {
      const now = JSON.stringify(await readLedger(fleet));
      const isChanged = now !== last;
      last = now;
      if (isChanged) throw new Error(`the ledger changes without traffic: ${now}`);
    },
    { timeoutMs: 60_000, intervalMs: 4_000 },
  );
}

function runNft(lines: readonly string[]): void {
  execFileSync(programPath('nft'), ['-f', '-'], { input: `${lines.join('\n')}\n` });
}

function appendUntilFull(file: string, bytes: number): void {
  const chunk = Buffer.alloc(bytes);
  for (;;) {
    try {
      writeFileSync(file, chunk, { flag: 'a' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return;
      throw error;
    }
  }
}

/** libfaketime replaces the functions with which a program reads the clock. The monotonic clock stays. */
function fakeClockEnvironment(clockFile: string): Record<string, string> {
  return {
    LD_PRELOAD: fakeTimeLibrary(),
    FAKETIME_TIMESTAMP_FILE: clockFile,
    FAKETIME_CACHE_DURATION: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  };
}

/** Returns the path of the library in the system, or in the folder of the cache with the unpacked packages. */
function fakeTimeLibrary(): string {
  const folder = dirname(programPath('faketime'));
  const [library] = [join(folder, '../..'), join(folder, '../root')].flatMap((root) =>
    globSync('usr/lib/*/faketime/libfaketime.so.1', { cwd: root }).map((path) => join(root, path)),
  );
  if (library === undefined) throw new Error(`libfaketime.so.1 is missing beside ${folder}`);
  return library;
}
