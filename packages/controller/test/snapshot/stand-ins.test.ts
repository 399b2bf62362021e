// A controller that may not read a kind, and what the table in force tells it instead.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  DEFAULT_SETTINGS,
  type Entry,
  entriesOf,
  heldFor,
  type NamespaceObject,
  NOTHING_HELD,
  OPEN_GRANTS,
  OPEN_POLICY,
  type RoutingTable,
  type ServiceObject,
  type SliceObject,
  type Snapshot,
  type TenantPolicyObject,
  translate,
} from '@weir/model';
import { deepFreeze } from '@weir/testkit';
import { REPLACEABLE_KINDS, type ReplaceableKind, standInsFor, withStandIns } from '../../src/snapshot/stand-ins.ts';
import { EMPTY, nodeObject, serviceObject } from '../fixtures/fake-source.ts';

const FIELD = {
  Namespace: 'namespaces',
  Node: 'nodes',
  EndpointSlice: 'slices',
  Pod: 'pods',
  TenantPolicy: 'policies',
} as const;

const meta = (name: string): NamespaceObject => ({ uid: name, name, labels: {}, annotations: {}, createdAt: null });
const service = (path: string, change: Partial<ServiceObject> = {}): ServiceObject => {
  const [namespace = '', name = ''] = path.split('/');
  return { ...serviceObject(name), uid: `uid-${namespace}-${name}`, namespace, ...change };
};
const slice = (path: string, addresses: readonly string[], change: Partial<SliceObject> = {}): SliceObject => {
  const [namespace = '', serviceName = ''] = path.split('/');
  const endpoints = addresses.map((address) => ({
    addresses: [address],
    zone: 'eu-1a',
    hintedZones: ['eu-1b', 'eu-1c'],
    ready: true,
    serving: true,
    terminating: false,
  }));
  const ports = [{ name: null, port: 8080, protocol: 'TCP' }];
  return { ...meta(`${serviceName}-1`), namespace, serviceName, addressType: 'IPv4', ports, endpoints, ...change };
};
const port = (name: string | null, number: number, protocol = 'TCP'): ServiceObject['ports'][number] => ({
  name,
  port: number,
  protocol,
  appProtocol: null,
  nodePort: null,
});
const policy = (name: string, team: string, spec: Partial<TenantPolicyObject['spec']>): TenantPolicyObject => {
  const namespaceSelector = { matchLabels: { team }, matchExpressions: [] };
  return { ...meta(name), spec: { ...OPEN_POLICY, namespaceSelector, ...spec } };
};

/** Pools, zones, both families, several slices and ports, endpoints outside, limits, and a namespace in dispute. */
const WORLD: Snapshot = deepFreeze({
  ...EMPTY,
  settings: { ...DEFAULT_SETTINGS, trust: { kind: 'pods', serviceCidrs: ['10.96.0.0/16'] } },
  namespaces: [
    { ...meta('gold-db'), labels: { team: 'gold' } },
    { ...meta('gold-web'), labels: { team: 'gold' } },
    meta('plain'),
    { ...meta('rival'), labels: { team: 'rival' } },
  ],
  nodes: [
    nodeObject('a', '192.0.2.1'),
    { ...nodeObject('b', '192.0.2.2'), internalIPs: ['192.0.2.2', '2001:db8::2'] },
    {
      ...nodeObject('c', '192.0.2.3'),
      externalIPs: ['198.51.100.3'],
      labels: { role: 'loadbalancer', 'weir.dev/pool': 'edge', 'topology.kubernetes.io/zone': 'eu-1a' },
    },
  ],
  services: [
    service('gold-db/external', { hasSelector: false, ports: [port(null, 5432)] }),
    service('gold-web/web', {
      annotations: { 'service.kubernetes.io/topology-mode': 'Auto' },
      ports: [port('http', 80), port('dns', 53, 'UDP')],
    }),
    service('gold-web/tls', {
      annotations: { 'weir.dev/hosts': 'shop.example.com', 'weir.dev/tls-passthrough': 'true' },
      ports: [port(null, 443)],
    }),
    service('plain/both', { ports: [port(null, 8443)] }),
    service('rival/refused', { ports: [port(null, 9000)] }),
  ],
  slices: [
    slice('gold-db/external', ['172.16.0.9']),
    slice('gold-web/web', ['10.244.0.1', '10.244.0.2'], {
      ports: [
        { name: 'http', port: 8080, protocol: 'TCP' },
        { name: 'dns', port: 5353, protocol: 'UDP' },
      ],
    }),
    slice('gold-web/web', ['10.244.0.3'], { ...meta('web-2'), ports: [{ name: 'http', port: 9090, protocol: 'TCP' }] }),
    slice('plain/both', ['10.244.1.1', '192.0.2.1']),
    slice('plain/both', ['2001:db8:1::1'], { ...meta('both-6'), addressType: 'IPv6' }),
  ],
  pods: [
    { namespace: 'gold-web', name: 'w', ips: ['10.244.0.1', '10.244.0.2', '10.244.0.3'], hostNetwork: false },
    { namespace: 'plain', name: 'p', ips: ['10.244.1.1', '2001:db8:1::1'], hostNetwork: false },
    { namespace: 'plain', name: 'q', ips: ['192.0.2.1'], hostNetwork: true },
  ],
  policies: [
    policy('gold', 'gold', {
      priority: 5,
      tenantFrom: { kind: 'name', name: 'gold' },
      limits: { services: 3, ports: 5 },
      grants: {
        pools: ['edge'],
        nodesPerService: 1,
        allowedPorts: [{ from: 1, to: 10_000 }],
        allowedHosts: ['*.example.com'],
        allowedEndpointCIDRs: ['172.16.0.0/12'],
      },
    }),
    policy('rival', 'rival', { tenantFrom: { kind: 'name', name: 'gold' } }),
  ],
});

const without = (kind: ReplaceableKind, snapshot: Snapshot = WORLD): Snapshot => ({ ...snapshot, [FIELD[kind]]: [] });
const IN_FORCE = translate(WORLD, NOTHING_HELD).table;
const UNREAD_POLICIES: ReadonlySet<ReplaceableKind> = new Set(['TenantPolicy']);

function decidedWithout(kind: ReplaceableKind, change: Partial<Snapshot> = {}): RoutingTable {
  const read = without(kind, { ...WORLD, ...change });
  const snapshot = withStandIns(
    read,
    new Set([kind]),
    standInsFor(IN_FORCE, { pods: read.pods, unread: new Set([kind]) }),
  );
  return translate(deepFreeze(snapshot), heldFor(IN_FORCE)).table;
}

/** What proxies act upon, and what is said of Services but for the words of a dispute. */
const gist = (table: RoutingTable): Entry[] =>
  [...table.entries.values()]
    .filter(({ kind }) => kind !== 'problem')
    .map((entry) =>
      entry.kind === 'service' && entry.accepted.reason === 'TenantConflict'
        ? { ...entry, accepted: { ...entry.accepted, message: '' } }
        : entry,
    )
    .sort((a, b) => (a.id < b.id ? -1 : 1));

describe('what the table tells of a kind that may not be read', () => {
  for (const kind of REPLACEABLE_KINDS) {
    test(`leaves the table as it is without ${FIELD[kind]}, which matter`, () => {
      assert.deepEqual(gist(decidedWithout(kind)), gist(IN_FORCE));
      const nothing = translate(deepFreeze(without(kind)), heldFor(IN_FORCE)).table;
      assert.notDeepEqual(gist(nothing), gist(IN_FORCE));
    });
  }

  const reasonOf = (table: RoutingTable, path: string): string | undefined =>
    entriesOf(table, 'service').find(({ namespace, name }) => `${namespace}/${name}` === path)?.accepted.reason;

  test('lets everything else change: a new Service is served without nodes, pods or slices to read', () => {
    const services = [...WORLD.services, service('plain/new', { ports: [port(null, 9443)] })];
    for (const kind of ['Node', 'Pod', 'EndpointSlice'] as const) {
      const table = decidedWithout(kind, { services });
      assert.equal(reasonOf(table, 'plain/new'), 'Accepted');
      assert.equal(entriesOf(table, 'listener').filter((each) => each.service === 'uid-plain-new').length, 3);
    }
  });

  test('does not lift limits: a Service too many is refused without policies to read', () => {
    const services = [...WORLD.services, service('gold-web/third', { ports: [port(null, 81)] })];
    for (const kind of ['TenantPolicy', 'Namespace'] as const) {
      const table = decidedWithout(kind, { services });
      assert.equal(reasonOf(table, 'gold-web/third'), 'PortNotAllowed');
      assert.equal(
        reasonOf(
          decidedWithout(kind, {
            services: [...WORLD.services, service('gold-web/third', { ports: [port(null, 80)] })],
          }),
          'gold-web/third',
        ),
        'QuotaExceeded',
      );
    }
  });

  test('believes no address that was not believed before, without pods to read', () => {
    const slices = [...WORLD.slices, slice('plain/both', ['10.244.9.9'], meta('both-9'))];
    const table = decidedWithout('Pod', { slices });
    const addresses = entriesOf(table, 'endpoints').flatMap((entry) => entry.endpoints.map(({ address }) => address));
    assert.ok(addresses.includes('10.244.1.1'));
    assert.ok(!addresses.includes('10.244.9.9'));
    assert.equal(reasonOf(table, 'plain/both'), 'EndpointForbidden');
  });

  test('is nothing when there is no table, and then only what needs none of it is served', () => {
    const empty = standInsFor({ entries: new Map() }, { pods: [], unread: new Set(['Pod']) });
    const table = translate(withStandIns(without('Pod'), new Set(['Pod']), empty), NOTHING_HELD).table;
    const addresses = entriesOf(table, 'endpoints').flatMap((entry) => entry.endpoints.map(({ address }) => address));
    assert.deepEqual(addresses, ['172.16.0.9']);
  });
});

test('what a tenant is allowed in place of a policy are single ports and addresses', () => {
  const { policies } = standInsFor(IN_FORCE, { pods: WORLD.pods, unread: UNREAD_POLICIES });
  const gold = policies.find(({ name }) => name === 'gold');
  assert.deepEqual(gold?.spec.grants, {
    ...OPEN_GRANTS,
    pools: ['edge'],
    nodesPerService: 1,
    allowedPorts: [53, 80, 443, 5432].map((number) => ({ from: number, to: number })),
    allowedHosts: ['shop.example.com'],
    allowedEndpointCIDRs: ['172.16.0.9/32'],
  });
});

describe('pods that can be read before policies can', () => {
  const both: ReadonlySet<ReplaceableKind> = new Set(['Pod', 'TenantPolicy']);
  const first = standInsFor(IN_FORCE, { pods: [], unread: both });
  const later = standInsFor(IN_FORCE, { pods: WORLD.pods, unread: UNREAD_POLICIES }, first);
  const allowedBy = ({ policies }: typeof first): readonly (readonly string[])[] =>
    policies.map(({ spec }) => spec.grants.allowedEndpointCIDRs);

  test('leave allowed only what is of none of them; before, nothing was, for what stood in for them had all', () => {
    assert.deepEqual(allowedBy(first), [[], []]);
    assert.deepEqual(allowedBy(later), [['172.16.0.9/32'], []]);
    const snapshot = withStandIns(without('TenantPolicy', without('Pod')), both, first);
    assert.deepEqual(gist(translate(deepFreeze(snapshot), heldFor(IN_FORCE)).table), gist(IN_FORCE));
    const read = withStandIns(without('TenantPolicy'), UNREAD_POLICIES, later);
    assert.deepEqual(gist(translate(deepFreeze(read), heldFor(IN_FORCE)).table), gist(IN_FORCE));
  });

  test('a pod that ends then is let go of, also where its address stands in a slice on', () => {
    const pods = WORLD.pods.filter(({ namespace }) => namespace !== 'gold-web');
    const snapshot = withStandIns({ ...without('TenantPolicy'), pods }, UNREAD_POLICIES, later);
    const { table } = translate(deepFreeze(snapshot), heldFor(IN_FORCE));
    const left = entriesOf(table, 'endpoints').filter(({ service: uid }) => uid === 'uid-gold-web-web');
    assert.deepEqual(
      left.flatMap(({ endpoints }) => endpoints),
      [],
    );
  });

  test('leave all others the same objects, and the policies, too, while the same can be read', () => {
    for (const field of ['namespaces', 'nodes', 'slices', 'pods'] as const) assert.equal(later[field], first[field]);
    assert.equal(standInsFor(IN_FORCE, { pods: [], unread: UNREAD_POLICIES }, later), later);
  });
});

test('endpoints that terminate, where none is ready, stand in as such', () => {
  const [leaving] = slice('plain/both', ['10.244.1.1']).endpoints;
  const endpoints = [
    { ...leaving, addresses: ['10.244.1.1'], zone: null, ready: false, serving: true, terminating: true },
  ];
  const world = { ...WORLD, slices: [slice('plain/both', [], { endpoints })] };
  const { table } = translate(deepFreeze(world), NOTHING_HELD);
  const unread: ReadonlySet<ReplaceableKind> = new Set(['EndpointSlice']);
  const standIns = standInsFor(table, { pods: WORLD.pods, unread });
  const after = translate(deepFreeze(withStandIns(without('EndpointSlice'), unread, standIns)), heldFor(table)).table;
  assert.deepEqual(gist(after), gist(table));
});

test('a namespace in dispute keeps the endpoints that its policy allows, and its former tenant gets nothing of it', () => {
  const [gold, rival] = WORLD.policies;
  assert.ok(gold !== undefined && rival !== undefined);
  const grants = { ...OPEN_GRANTS, allowedEndpointCIDRs: ['172.16.0.0/12'] };
  const before: Snapshot = {
    ...WORLD,
    namespaces: [...WORLD.namespaces, { ...meta('old'), labels: { team: 'gold' } }],
    services: [...WORLD.services, service('old/external', { hasSelector: false, ports: [port(null, 9100)] })],
    slices: [...WORLD.slices, slice('old/external', ['172.16.0.7'])],
    policies: [
      { ...gold, spec: { ...gold.spec, limits: {} } },
      { ...rival, spec: { ...rival.spec, grants } },
    ],
  };
  const disputed: Snapshot = {
    ...before,
    namespaces: [...WORLD.namespaces, { ...meta('old'), labels: { team: 'rival' } }],
  };
  const table = translate(deepFreeze(disputed), heldFor(translate(deepFreeze(before), NOTHING_HELD).table)).table;
  const addresses = (of: RoutingTable): readonly string[] =>
    entriesOf(of, 'endpoints')
      .flatMap((entry) => (entry.service === 'uid-old-external' ? entry.endpoints : []))
      .map(({ address }) => address);
  assert.deepEqual(addresses(table), ['172.16.0.7']);
  const standIns = standInsFor(table, { pods: disputed.pods, unread: UNREAD_POLICIES });
  const snapshot = withStandIns({ ...disputed, policies: [] }, UNREAD_POLICIES, standIns);
  const after = translate(deepFreeze(snapshot), heldFor(table)).table;
  assert.deepEqual(gist(after), gist(table));
  const told = entriesOf(after, 'service').find(({ namespace }) => namespace === 'old')?.accepted.message ?? '';
  assert.match(
    told,
    /^it is not known whose tenant namespace "old" is: .* ask the operator to let the controller read/,
  );
  const granted = standIns.policies.find(({ name }) => name === 'gold')?.spec.grants;
  assert.deepEqual(granted?.allowedEndpointCIDRs, ['172.16.0.9/32']);
  assert.ok(granted?.allowedPorts?.every(({ from }) => from !== 9100));
});
