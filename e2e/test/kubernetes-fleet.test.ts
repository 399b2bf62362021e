// Tests the effects of nodes, proxies and Redis on Services, as users observe them with kubectl on a real API server.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import { insideNamespace, requireProgram } from '@weir/tools';
import { ALL_ADDRESSES, EXTRA_NODE_ADDRESS, NODES, nodeAddress, podAddress } from '../src/addresses.ts';
import { assertEchoed } from '../src/client-assertions.ts';
import { type Fleet, startFleet } from '../src/fleet.ts';
import { endpointSlice, loadBalancer, namespaceManifest, tenantPolicy } from '../src/manifests.ts';
import { Pods } from '../src/pods.ts';
import {
  addressesIn,
  conditionIn,
  type ServiceStatus,
  waitForAddresses,
  waitForRefusal,
  waitForStatus,
} from '../src/service-status.ts';

const ADDRESSES = NODES.map(nodeAddress);
const SHARED_PORT = 8443;
const LONG_WAIT = { timeoutMs: 30_000, intervalMs: 200 };

const requirement = {
  ...requireProgram('redis', 'kubernetes'),
  ...insideNamespace({ addresses: [...ALL_ADDRESSES, EXTRA_NODE_ADDRESS] }),
};

describe('a Service and the fleet', { ...requirement, timeout: 300_000 }, () => {
  let fleet: Fleet;
  let pods: Pods;
  const kubectl = (...args: string[]): Promise<string> => fleet.cluster.kubectl(...args);
  const apply = (...objects: readonly object[]): Promise<void> => fleet.cluster.apply(...objects);
  const when = (path: string, isRight: (status: ServiceStatus) => boolean): Promise<ServiceStatus> =>
    waitForStatus(fleet.cluster, path, isRight);
  const served = (path: string, addresses: readonly string[]): Promise<ServiceStatus> =>
    waitForAddresses(fleet.cluster, path, addresses);
  const reasonOf = (status: ServiceStatus, type: string): string => conditionIn(status, type)?.reason ?? '';
  const refusal = (path: string): Promise<string> => waitForRefusal(fleet.cluster, path);

  before(async () => {
    fleet = await startFleet({ settings: { WEIR_SHARED_PORTS: String(SHARED_PORT) } });
    pods = new Pods(fleet.cluster);
    await apply(
      namespaceManifest('shop', { team: 'shop' }),
      loadBalancer('shop/web', { ports: [{ port: 3001, targetPort: 'main' }] }),
    );
    await pods.echo({ namespace: 'shop', name: 'web', labels: { app: 'web' }, number: 1, port: 8080 });
    await served('shop/web', ADDRESSES);
  });
  after(async () => {
    await pods?.close();
    await fleet?.close();
  });

  test('loses the address of a proxy that dies, and regains the address after a restart', async () => {
    await fleet.killProxy('node-2');
    await served('shop/web', [ADDRESSES[0] ?? '', ADDRESSES[2] ?? '']);
    await assertEchoed([ADDRESSES[0] ?? '', ADDRESSES[2] ?? ''], 3001);
    await fleet.startProxy('node-2');
    await served('shop/web', ADDRESSES);
    await assertEchoed(ADDRESSES, 3001);
  });

  test('keeps an address when all proxies die, and new Services wait for a proxy', async () => {
    await Promise.all(NODES.map((node) => fleet.killProxy(node)));
    await eventually(async () => {
      const text = await fleet.weir('get', 'proxies', '-o', 'json');
      const { items } = JSON.parse(text) as { items: readonly { readonly state: string }[] };
      assert.deepEqual(
        items.map(({ state }) => state),
        NODES.map(() => 'Silent'),
      );
    }, LONG_WAIT);
    await apply(loadBalancer('shop/later', { ports: [{ port: 3010 }] }));
    await when('shop/later', (now) => reasonOf(now, 'Programmed') === 'WaitingForProxy');
    // Expects at least one address. All addresses stay if all proxies become silent at the same check; otherwise at least the last address
    // stays.
    const kept = addressesIn(await when('shop/web', () => true));
    assert.ok(kept.length > 0 && kept.every((address) => ADDRESSES.includes(address)), kept.join());
    for (const node of NODES) await fleet.startProxy(node);
    await served('shop/later', ADDRESSES);
    await served('shop/web', ADDRESSES);
    await assertEchoed(ADDRESSES, 3001);
  });

  test('prefers endpoints whose hints name the zone of the node, and uses others if none is ready', async () => {
    await kubectl('label', 'node', 'node-1', 'topology.kubernetes.io/zone=here');
    await kubectl('label', 'node', 'node-2', 'topology.kubernetes.io/zone=there');
    const spec = { selector: null, trafficDistribution: 'PreferSameZone', ports: [{ port: 3005 }] };
    await apply(namespaceManifest('zones'), loadBalancer('zones/web', spec));
    const own = await Promise.all(
      [2, 3].map((number) => pods.echo({ namespace: 'zones', name: `p${number}`, labels: {}, number, port: 8080 })),
    );
    const [here, there] = own;
    assert.ok(here !== undefined && there !== undefined);
    // Returns an endpoint in the zone `there` with a hint for `zone`.
    const endpoint = (number: number, zone: string, ready = true): object => ({
      addresses: [podAddress(number)],
      zone: 'there',
      hints: { forZones: [{ name: zone }] },
      conditions: { ready },
    });
    const slices = (isReady: boolean): object =>
      endpointSlice('zones/web', [], { endpoints: [endpoint(2, 'here', isReady), endpoint(3, 'there')] });
    /** Asserts that connections to a node reach exactly the pods `wanted`. */
    const meets = (node: (typeof NODES)[number], ...wanted: readonly (typeof here)[]): Promise<void> =>
      eventually(async () => {
        const before = own.map(({ server }) => server.received);
        for (let turn = 0; turn < 10; turn += 1) await assertEchoed([nodeAddress(node)], 3005);
        const met = own.filter(({ server }, index) => server.received > (before[index] ?? 0));
        assert.deepEqual(
          met.map(({ name }) => name),
          wanted.map(({ name }) => name),
        );
      }, LONG_WAIT);
    await apply(slices(true));
    await meets('node-1', here);
    await meets('node-2', there);
    await meets('node-3', here, there);
    await apply(slices(false));
    await meets('node-1', there);
    await apply(slices(true));
    await meets('node-1', here);
    await kubectl(
      'patch',
      'service',
      'web',
      '-n',
      'zones',
      '--type=merge',
      '-p',
      '{"spec":{"trafficDistribution":null}}',
    );
    await meets('node-1', here, there);
  });

  test('publishes additional addresses while the annotation of a node lists them', async () => {
    await kubectl('annotate', 'node', 'node-1', `weir.dev/addresses=${EXTRA_NODE_ADDRESS}`);
    await served('shop/web', [...ADDRESSES, EXTRA_NODE_ADDRESS].sort());
    await assertEchoed([EXTRA_NODE_ADDRESS], 3001);
    await kubectl('annotate', 'node', 'node-1', 'weir.dev/addresses-');
    await served('shop/web', ADDRESSES);
  });

  test('keeps its other ports when one port is taken, and names the refused port', async () => {
    await apply(namespaceManifest('rival'), loadBalancer('rival/first', { ports: [{ port: 3002 }] }));
    await served('rival/first', ADDRESSES);
    await apply(
      loadBalancer('shop/web', {
        ports: [
          { name: 'good', port: 3001, targetPort: 'main' },
          { name: 'taken', port: 3002, targetPort: 'main' },
        ],
      }),
    );
    const status = await when('shop/web', (now) => reasonOf(now, 'Accepted') === 'PortConflict');
    assert.doesNotMatch(conditionIn(status, 'Accepted')?.message ?? '', /rival/);
    const ports = (await when('shop/web', (now) => now.loadBalancer?.ingress?.[0]?.ports?.length === 2)).loadBalancer
      ?.ingress?.[0]?.ports;
    assert.deepEqual(
      ports?.map(({ port, error }) => [port, error]),
      [
        [3001, undefined],
        [3002, 'weir.dev/PortConflict'],
      ],
    );
    await assertEchoed(ADDRESSES, 3001);
    await kubectl('delete', 'service', 'first', '-n', 'rival');
    await when('shop/web', (now) => reasonOf(now, 'Accepted') === 'Accepted');
    await assertEchoed(ADDRESSES, 3002);
  });

  test('names the policy and the port that it refuses, but not the policy of another tenant', async () => {
    const accepted = (path: string, reason: string): Promise<ServiceStatus> =>
      when(path, (now) => reasonOf(now, 'Accepted') === reason);
    await apply(
      namespaceManifest('bound', { team: 'bound' }),
      tenantPolicy('bound', { pools: ['default'], allowedPorts: ['3030-3039'] }),
      loadBalancer('bound/good', { ports: [{ port: 3030 }] }),
    );
    await served('bound/good', ADDRESSES);
    await apply(
      loadBalancer('bound/port', { ports: [{ port: 3040 }] }),
      loadBalancer('bound/pool', { ports: [{ port: 3031 }] }, { annotations: { 'weir.dev/pool': 'edge' } }),
      loadBalancer('bound/mixed', {
        ports: [
          { name: 'tcp', port: 3032 },
          { name: 'sctp', port: 3033, protocol: 'SCTP' },
        ],
      }),
    );
    assert.match(await refusal('bound/port'), /^PortNotAllowed: port 3040\/TCP .*3030-3039.* TenantPolicy "bound"$/);
    assert.match(await refusal('bound/pool'), /^PoolNotAllowed: .*pool "edge", only default.* TenantPolicy "bound"$/);
    for (const [name, reason] of [
      ['port', 'PortNotAllowed'],
      ['pool', 'PoolNotAllowed'],
      ['mixed', 'UnsupportedProtocol'],
    ] as const) {
      await eventually(async () => {
        const described = await kubectl('describe', 'service', name, '-n', 'bound');
        assert.match(described, new RegExp(`Warning +${reason} `));
      }, LONG_WAIT);
    }
    const mixed = await served('bound/mixed', ADDRESSES);
    assert.deepEqual(
      [reasonOf(mixed, 'Accepted'), reasonOf(mixed, 'Programmed')],
      ['UnsupportedProtocol', 'Programmed'],
    );
    assert.deepEqual(mixed.loadBalancer?.ingress?.[0]?.ports, [
      { port: 3032, protocol: 'TCP' },
      { port: 3033, protocol: 'SCTP', error: 'weir.dev/UnsupportedProtocol' },
    ]);

    await apply(
      namespaceManifest('other', { team: 'other' }),
      tenantPolicy('taker', {
        priority: 10,
        namespaceSelector: { matchLabels: { team: 'other' } },
        tenantFrom: { type: 'Name', name: 'bound' },
      }),
    );
    const disputed = await accepted('bound/good', 'TenantConflict');
    assert.doesNotMatch(conditionIn(disputed, 'Accepted')?.message ?? '', /other"|taker/);
    assert.deepEqual(addressesIn(disputed), ADDRESSES);
    await kubectl('delete', 'tenantpolicy', 'taker');
    await accepted('bound/good', 'Accepted');
  });

  test('shares a port by the host names that the policy of its tenant allows', async () => {
    const shared = (path: string, hosts?: string): object =>
      loadBalancer(
        path,
        { ports: [{ port: SHARED_PORT, targetPort: 'main' }] },
        hosts === undefined ? {} : { annotations: { 'weir.dev/tls-passthrough': 'true', 'weir.dev/hosts': hosts } },
      );
    await apply(
      namespaceManifest('game', { team: 'game' }),
      tenantPolicy('game', { allowedHosts: ['*.game.example'] }),
      tenantPolicy('shop', { allowedHosts: ['*.shop.example', 'play.game.example'] }),
      shared('game/first', 'play.game.example'),
    );
    await served('game/first', ADDRESSES);
    await apply(
      shared('shop/till', 'till.shop.example'),
      shared('shop/late', 'play.game.example'),
      shared('shop/other', 'bank.example'),
      shared('shop/all'),
    );
    await served('shop/till', ADDRESSES);
    const late = await refusal('shop/late');
    assert.match(late, /^HostConflict: .*play\.game\.example.*another tenant/);
    assert.doesNotMatch(late, /first/);
    assert.match(await refusal('shop/other'), /^HostNotAllowed: .*bank\.example.*TenantPolicy "shop"/);
    assert.match(await refusal('shop/all'), /^PortReserved: .*8443\/TCP is shared by host name/);
    await kubectl('delete', 'service', 'first', '-n', 'game');
    await served('shop/late', ADDRESSES);
  });
});
