// Checks that the other tenants keep what they own while tenant a makes random valid and invalid changes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Entry,
  entriesOf,
  NO_ALLOCATIONS,
  type PodObject,
  type RoutingTable,
  type ServiceEntry,
  type ServiceObject,
  type SliceObject,
  type Snapshot,
  Translator,
  UNRESTRICTED_GRANTS,
  UNRESTRICTED_POLICY,
} from '@weir/model';
import fc from 'fast-check';
import { services, slices } from '../fixtures/arbitrary-snapshot.ts';
import { namespace, node, pod, policy, slice, snapshotOf, team } from '../fixtures/snapshot.ts';

const settings = {
  ...snapshotOf({}).settings,
  sharedPorts: [80, 82],
  defaultPolicy: { ...UNRESTRICTED_POLICY, grants: { ...UNRESTRICTED_GRANTS, allowedHosts: ['*.shop.example'] } },
  trust: { kind: 'pods' as const, serviceCidrs: ['10.96.0.0/16'] },
};
const edge = { role: 'loadbalancer', 'weir.dev/pool': 'edge' };
const NODES = [
  node('n1', '192.0.2.1', { annotations: { 'weir.dev/addresses': '192.0.2.11, 2001:db8::1' } }),
  node('n2', '192.0.2.2'),
  node('n3', '192.0.2.3', { unschedulable: true }),
  node('e1', '192.0.2.8', { labels: edge }),
  node('e2', '192.0.2.9', { labels: edge }),
];

type Requests = Readonly<Record<string, string | undefined>>;

/** The policy of namespace a grants almost everything, the policy of namespace b less. Namespace c has the default policy. */
const POLICIES = [
  policy('a', {
    priority: 2,
    namespaceSelector: team('a'),
    tenantFrom: { kind: 'label', label: 'tenant' },
    grants: {
      ...UNRESTRICTED_GRANTS,
      pools: ['default', 'edge'],
      allowedHosts: ['*.example', '*.example.com'],
      allowedEndpointCIDRs: ['0.0.0.0/0'],
    },
    limits: { services: 3, ports: 6, tableBytes: 6_500 },
  }),
  policy('b', {
    priority: 1,
    namespaceSelector: team('b'),
    tenantFrom: { kind: 'name', name: 'bee' },
    grants: {
      ...UNRESTRICTED_GRANTS,
      pools: ['edge', 'default'],
      nodesPerService: 1,
      allowedPorts: [{ from: 80, to: 82 }],
      allowedHosts: ['*.shop.example'],
    },
    limits: { services: 2, ports: 3 },
  }),
];

/** Valid and invalid annotations of a Service. */
const anyRequests: fc.Arbitrary<Requests> = fc.record(
  {
    'weir.dev/pool': fc.constantFrom('default', 'edge', 'nowhere', 'no pool'),
    'weir.dev/nodes': fc.constantFrom('1', '2', '16', '0', 'many'),
    'weir.dev/hosts': fc.constantFrom('b.example.com', '*.example.com', '*'),
    'weir.dev/tls-passthrough': fc.constantFrom('true', 'yes'),
    'weir.dev/constructor': fc.constant('x'),
  },
  { requiredKeys: [] },
);
const placementRequests: fc.Arbitrary<Requests> = fc.record(
  { 'weir.dev/pool': fc.constantFrom('default', 'edge'), 'weir.dev/nodes': fc.constantFrom('1', '2', '16') },
  { requiredKeys: [] },
);
const hostRequests: fc.Arbitrary<Requests> = fc.record({
  'weir.dev/hosts': fc.constantFrom('x.shop.example', 'y.shop.example', '*.shop.example, z.shop.example'),
  'weir.dev/tls-passthrough': fc.constant('true'),
});
/** Requests of a Service whose ports are HTTP ports: `someServices` sets appProtocol if there is a path prefix. */
const pathRequests: fc.Arbitrary<Requests> = fc.record({
  'weir.dev/hosts': fc.constantFrom('x.shop.example', 'y.shop.example', '*.shop.example, z.shop.example'),
  'weir.dev/path-prefix': fc.constantFrom('/a', '/a/b', '/b'),
});
const validRequests = fc
  .tuple(placementRequests, fc.oneof(fc.constant({}), hostRequests, pathRequests))
  .map(([a, b]): Requests => ({ ...a, ...b }));
const shapes = fc.record({
  ipFamilies: fc.constantFrom<readonly string[]>([], ['IPv4'], ['IPv6'], ['IPv4', 'IPv6']),
  type: fc.constantFrom('LoadBalancer', 'LoadBalancer', 'LoadBalancer', 'ClusterIP'),
  deleting: fc.constantFrom(false, false, false, true),
  externalTrafficPolicy: fc.constantFrom('Cluster', 'Local'),
  publishNotReadyAddresses: fc.boolean(),
  nodePort: fc.constantFrom(null, 31_000),
});
const someServices = (
  namespaces: readonly string[],
  { mistakes }: { readonly mistakes: boolean },
): fc.Arbitrary<readonly ServiceObject[]> => {
  const requests = mistakes ? fc.oneof(validRequests, anyRequests) : validRequests;
  const more = fc.array(fc.tuple(requests, shapes), { minLength: 7, maxLength: 7 });
  return fc.tuple(services(namespaces), more).map(([some, extras]) =>
    some.map((each, index) => {
      const [request, { nodePort, ...shape }]: readonly [Requests, { readonly nodePort: number | null }] = extras[
        index
      ] ?? [{}, { nodePort: null }];
      const appProtocol = request['weir.dev/path-prefix'] === undefined ? null : 'http';
      const ports = each.ports
        .filter(({ port }) => mistakes || port !== 22)
        .map((one) => ({ ...one, nodePort, appProtocol: appProtocol ?? (mistakes ? one.appProtocol : null) }));
      const annotations = { ...(mistakes && each.annotations), ...request };
      return {
        ...each,
        ...shape,
        ports,
        annotations,
        sourceRanges: mistakes ? each.sourceRanges : [],
      } as ServiceObject;
    }),
  );
};

const ADDRESSES = ['10.0.0.1', '10.0.0.2', '127.0.0.1', '10.96.0.1', '192.0.2.1', '192.0.2.8', '8.8.8.8'];
const pods = (space: string): fc.Arbitrary<readonly PodObject[]> =>
  fc
    .array(fc.tuple(fc.nat(3), fc.constantFrom(...ADDRESSES), fc.boolean()), { maxLength: 4 })
    .map((some) => some.map(([number, ip, isHost]) => pod(`${space}/p${number}`, ip, isHost)));
const handmade: fc.Arbitrary<readonly SliceObject[]> = fc
  .uniqueArray(fc.constantFrom(...ADDRESSES), { maxLength: 4 })
  .map((addresses) => [
    slice('a/web', addresses, { name: 'by-hand', ports: [{ name: '80-TCP', port: 22, protocol: 'TCP' }] }),
    // Slices in other namespaces have the same name.
    slice('a/api', addresses, { name: 'api-0', ports: [{ name: '80-TCP', port: 80, protocol: 'TCP' }] }),
  ]);
/** Labels that tenant a may put on its namespace, such as the names of other tenants and of members of Object.prototype. */
const labels = fc.record(
  { team: fc.constantFrom('a', 'a', 'c'), tenant: fc.constantFrom('a', 'bee', 'c', 'constructor', '__proto__') },
  { requiredKeys: [] },
);

interface Part {
  readonly services: readonly ServiceObject[];
  readonly slices: readonly SliceObject[];
  readonly pods: readonly PodObject[];
  readonly labels: Record<string, string>;
}
const parts: fc.Arbitrary<Part> = fc
  .record({
    services: someServices(['a'], { mistakes: true }),
    slices: slices(['a']),
    handmade,
    pods: pods('a'),
    labels,
  })
  .map(({ handmade: more, slices: some, ...part }) => {
    const own = some.filter(({ name }) => name !== 'api-0');
    return { ...part, slices: [...own, ...more], labels: part.labels as Record<string, string> };
  });
const OTHER_PODS = [
  ...['b', 'c'].flatMap((space) => [1, 2, 3].map((i) => pod(`${space}/p${i}`, `10.0.0.${i}`))),
  pod('b/host', '192.0.2.8', true),
  pod('c/host', '192.0.2.1', true),
];
/** The endpoints of pods on the host network, at a port that tenant a may request on the same node. */
const hostSlices = [
  slice('b/web', ['192.0.2.8'], { name: 'host', ports: [{ name: '80-TCP', port: 81, protocol: 'TCP' }] }),
  slice('c/web', ['192.0.2.1'], { name: 'host', ports: [{ name: '81-TCP', port: 80, protocol: 'TCP' }] }),
];
const others = fc.record({
  services: someServices(['b', 'c'], { mistakes: false }),
  slices: fc
    .tuple(slices(['b', 'c']), fc.subarray(hostSlices))
    .map(([some, host]): readonly SliceObject[] => [...some, ...host]),
  pods: fc.constant(OTHER_PODS),
});

const byPath = (x: { readonly namespace: string; readonly name: string }, y: typeof x): number =>
  `${x.namespace}/${x.name}` < `${y.namespace}/${y.name}` ? -1 : 1;

/**
 * Returns a snapshot with the objects of tenant a (`part`) and of the other tenants (`of`). The objects of the other tenants stay
 * identical (===), as in the snapshots of a real source.
 */
function worldOf(of: Omit<Part, 'labels'>, part: Part): Snapshot {
  return snapshotOf({
    settings,
    nodes: NODES,
    policies: POLICIES,
    services: [...part.services, ...of.services].sort(byPath),
    slices: [...part.slices, ...of.slices].sort(byPath),
    pods: [...part.pods, ...of.pods].sort(byPath),
    namespaces: [namespace('a', part.labels), namespace('b', { team: 'b' }), namespace('c')],
  });
}

const servicesOf = (table: RoutingTable): readonly ServiceEntry[] =>
  entriesOf(table, 'service').filter((entry) => entry.namespace !== 'a');

/**
 * Returns the listeners, endpoints and certificate of a Service. Leaves out the status, because tenant a may change the message of a
 * Service that waits.
 */
function partOf(table: RoutingTable, { uid }: ServiceEntry): readonly Entry[] {
  const own = [...table.entries.values()].filter((entry) => 'service' in entry && entry.service === uid);
  return own.sort((x, y) => (x.id < y.id ? -1 : 1));
}

/**
 * Reports whether tenant a takes the tenant name that belongs to the namespace of this Service. The policy of tenant a has the higher
 * priority and allows any name.
 */
const isDisputed = ({ labels: own }: Part, { namespace: other }: ServiceEntry): boolean =>
  own.team === 'a' && own.tenant === (other === 'b' ? 'bee' : other);

/**
 * Reports whether the Service got everything that it requests. The status of such a Service must not change when tenant a releases
 * something.
 */
const isContent = ({ accepted, degraded, settings: given }: ServiceEntry): boolean =>
  given !== null && accepted.reason === 'Accepted' && !degraded.some(({ reason }) => reason === 'FewerNodes');

test('keeps what other tenants own, and the full status of their satisfied Services, whatever tenant a changes', () => {
  fc.assert(
    fc.property(others, fc.array(parts, { minLength: 2, maxLength: 8 }), (of, history) => {
      const translator = new Translator(settings, NO_ALLOCATIONS);
      let before: RoutingTable | undefined;
      let last: Part | undefined;
      for (const part of history) {
        const { table } = translator.translate(worldOf(of, part));
        for (const old of before === undefined ? [] : servicesOf(before)) {
          const now = table.entries.get(old.id);
          assert.ok(before !== undefined && last !== undefined && now?.kind === 'service');
          assert.ok(isDisputed(part, old) || now.accepted.reason !== 'TenantConflict', `${old.id} is in no dispute`);
          if (isContent(old) && !isDisputed(last, old) && !isDisputed(part, old)) {
            assert.deepEqual(now, old);
            assert.deepEqual(partOf(table, old), partOf(before, old));
          } else if (old.nodes.length > 0) {
            const kept = new Set(partOf(table, old).map(({ id }) => id));
            for (const { id } of partOf(before, old)) assert.ok(kept.has(id), `${id} is lost`);
          }
        }
        before = table;
        last = part;
      }
    }),
    { numRuns: 300 },
  );
});

test('never names the objects of one tenant in messages to another tenant', () => {
  fc.assert(
    fc.property(others, fc.array(parts, { minLength: 1, maxLength: 4 }), (of, history) => {
      const translator = new Translator(settings, NO_ALLOCATIONS);
      for (const part of history) {
        const { problems } = translator.translate(worldOf(of, part));
        for (const { subject, message } of problems) {
          const [own] = /^Service ([abc])\//.exec(subject)?.slice(1) ?? [];
          if (own === undefined) continue;
          for (const other of ['a', 'b', 'c']) {
            if (other !== own) assert.doesNotMatch(message, new RegExp(`\\b${other}/(web|api|db)\\b`));
          }
        }
      }
    }),
    { numRuns: 150 },
  );
});
