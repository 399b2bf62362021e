// Runs a fleet with tenants a and b on two nodes. The fleet has the components of `weir standalone`: a directory of manifests, a store in
// memory, and a proxy for each node.
import assert from 'node:assert/strict';
import { randomInt, randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openDirectorySource, startController } from '@weir/controller';
import { DEFAULT_FLEET_SETTINGS, type Entry, type RoutingTable, type ServiceView, serviceViewsFor } from '@weir/model';
import { startProxy } from '@weir/proxy';
import { systemClock as clock, silentLogger } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import { echoServer, eventually } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service, tenantPolicy } from '../fixtures/manifests.ts';
import { startTlsEchoServer } from '../fixtures/tls-echo-server.ts';
import type { AttackTargets, ManifestFiles } from './hostile-manifests.ts';
import { connectLongLivedClients, type LongLivedClients } from './long-lived-clients.ts';
import { startUdpEchoServer } from './udp-echo-server.ts';

export interface IsolationFleet extends AsyncDisposable {
  readonly targets: AttackTargets;
  /** Replaces the manifests of tenant a. Resolves with the new routing table once every proxy has applied it. */
  apply(files: ManifestFiles): Promise<RoutingTable>;
  /** Resolves with the entries of tenant b in the routing table and the views of tenant b's Services. */
  stateOfB(): Promise<{ readonly entries: readonly Entry[]; readonly views: readonly ServiceView[] }>;
  /** Connects clients to the Services of tenant b. */
  connect(): Promise<LongLivedClients>;
}

const [TCP_PORT, UDP_PORT, SHARED_PORT] = [8_080, 5_353, 8_443];
/**
 * Hosts of tenant b. Tenant a's policy also allows the first host, but tenant b claimed that host before tenant a. Only tenant b's policy
 * allows the second host.
 */
const HOSTS = ['b.example.com', 'www.b.test'];

export async function startIsolationFleet(): Promise<IsolationFleet> {
  const stack = new AsyncDisposableStack();
  const files = stack.use(manifestDirectory());
  const tcp = stack.use(await echoServer());
  const [tlsOfA, tlsOfB] = [stack.use(await startTlsEchoServer('a')), stack.use(await startTlsEchoServer('b'))];
  const udp = stack.use(await startUdpEchoServer());
  // Random loopback addresses, so that concurrent tests do not conflict.
  const nodes = ['n1', 'n2'].map((name, index) => ({ name, address: `127.${randomInt(16, 250)}.7.${index + 1}` }));
  const inB = { namespace: 'b' };
  files.write('b-echo.yaml', service('echo', { ...inB, port: TCP_PORT }), endpointSlice('echo', tcp.port, inB));
  files.write(
    'b-voice.yaml',
    overUdp(service('voice', { ...inB, port: UDP_PORT })),
    overUdp(endpointSlice('voice', udp.port, inB)),
  );
  const annotations = { 'weir.dev/hosts': HOSTS.join(), 'weir.dev/tls-passthrough': 'true' };
  const secure = service('secure', { ...inB, port: SHARED_PORT, annotations });
  files.write('b-secure.yaml', secure, endpointSlice('secure', tlsOfB.port, inB));
  files.write(
    'policies.yaml',
    withAllowedHosts(tenantPolicy('a', { services: 2, ports: 8 }), ['*.example.com']),
    withAllowedHosts(tenantPolicy('b', { services: 3, ports: 6 }), ['b.example.com', '*.b.test']),
  );

  const log = silentLogger();
  const settings = { ...DEFAULT_FLEET_SETTINGS, sharedPorts: [SHARED_PORT] };
  const store = new MemoryStore();
  stack.defer(() => store.close());
  const source = await openDirectorySource({ paths: [files.path], nodes, clock, watched: false });
  stack.defer(() => source.close());
  const controller = startController({ source, store, settings, log, clock });
  stack.defer(() => controller.close());
  await controller.idle();
  const fleet = `test-${randomUUID()}`;
  const proxies = await Promise.all(nodes.map(({ name }) => startProxy({ store, fleet, node: name, workers: 1, log })));
  stack.defer(async () => void (await Promise.all(proxies.map((proxy) => proxy.close({ drainMs: 0 })))));
  await Promise.all(proxies.map(({ ready }) => ready));

  const tableNow = async (): Promise<RoutingTable> => (await store.table.read())?.table ?? assert.fail('no table');
  const viewsNow = async (): Promise<readonly ServiceView[]> => {
    const [table, heartbeats] = await Promise.all([tableNow(), store.heartbeats.list()]);
    const fleetNow = {
      table,
      heartbeats,
      suspensions: [],
      now: clock.now(),
      previousAddresses: new Map(),
      reachable: true,
    };
    return serviceViewsFor(fleetNow).filter(({ namespace }) => namespace === 'b');
  };
  await eventually(async () => {
    for (const { addresses } of await viewsNow()) assert.equal(addresses.length, nodes.length);
  });
  const listeners = nodes.map(({ address }) => address);
  return {
    targets: {
      listeners,
      tcpPort: TCP_PORT,
      udpPort: UDP_PORT,
      sharedPort: SHARED_PORT,
      backends: [tcp.port, udp.port, tlsOfA.port],
    },
    async apply(next) {
      for (const name of ['one.yaml', 'two.yaml']) {
        const text = next[name];
        if (text === undefined) rmSync(join(files.path, name), { force: true });
        else writeFileSync(join(files.path, name), text);
      }
      await source.scan();
      await controller.idle();
      const published = await store.table.meta();
      await eventually(() => {
        for (const proxy of proxies) assert.equal(proxy.view().applied?.id, published?.id);
      });
      return tableNow();
    },
    async stateOfB() {
      const [{ entries }, views] = await Promise.all([tableNow(), viewsNow()]);
      const uids = new Set(views.map(({ uid }) => uid));
      const entriesOfB = [...entries.values()].filter((entry) => belongsToB(entry, uids));
      return { entries: entriesOfB.sort((x, y) => (x.id < y.id ? -1 : 1)), views };
    },
    connect: () =>
      connectLongLivedClients({
        hosts: listeners,
        tcpPort: TCP_PORT,
        udpPort: UDP_PORT,
        secure: { port: SHARED_PORT, names: HOSTS },
        udpPeers: udp.peers,
      }),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

function belongsToB(entry: Entry, services: ReadonlySet<string>): boolean {
  switch (entry.kind) {
    case 'service':
      return services.has(entry.uid);
    case 'certificate':
    case 'error-pages':
    case 'listener':
    case 'endpoints':
      return services.has(entry.service);
    case 'http-route':
      return entry.route.tenant === 'b';
    case 'tenant':
      return entry.name === 'b';
    case 'problem':
      return entry.problem.subject.includes(' b/');
    case 'node':
      return false;
  }
}

function withAllowedHosts(manifest: unknown, allowedHosts: readonly string[]): unknown {
  const { spec, ...rest } = manifest as { readonly spec: object };
  return { ...rest, spec: { ...spec, allowedHosts } };
}

/** Returns the manifest with UDP as the protocol of all ports. */
function overUdp(manifest: unknown): unknown {
  return JSON.parse(JSON.stringify(manifest), (key, value) =>
    key === 'ports' ? value.map((port: object) => ({ ...port, protocol: 'UDP' })) : value,
  );
}
