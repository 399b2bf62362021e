// What may happen to the objects of a cluster, one thing at a time.
import {
  type CertificateValidity,
  type FleetSettings,
  type NodeObject,
  type PodObject,
  type SecretObject,
  type ServiceObject,
  type SliceObject,
  type Snapshot,
  type SuspensionObject,
  type TenantPolicyObject,
  UNRESTRICTED_GRANTS,
  UNRESTRICTED_POLICY,
} from '@weir/model';
import fc from 'fast-check';
import {
  namespace,
  node,
  pod,
  policy,
  port,
  secret,
  service,
  snapshotOf,
  suspension,
  team,
} from '../build/snapshot.ts';
import { HOSTS, services, slices } from './arbitrary.ts';

export type SnapshotStep = (before: Snapshot) => Snapshot;

export const historySettings: FleetSettings = {
  ...snapshotOf({}).settings,
  sharedPorts: [82],
  defaultPolicy: { ...UNRESTRICTED_POLICY, grants: { ...UNRESTRICTED_GRANTS, allowedHosts: ['*.shop.example'] } },
  trust: { kind: 'pods' as const, serviceCidrs: [] },
  secretAccess: { kind: 'namespaces', namespaces: ['a', 'b'] },
};

/** Puts an object in place of the one with its path, or takes it away. */
function put<T extends { readonly namespace?: string; readonly name: string }>(
  list: readonly T[],
  item: T,
): readonly T[] {
  const others = list.filter((each) => each.name !== item.name || each.namespace !== item.namespace);
  return [...others, item].sort((a, b) => (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1));
}
const without = <T>(list: readonly T[], index: number): readonly T[] =>
  list.filter((_, at) => at !== index % Math.max(1, list.length));

const serviceSteps: fc.Arbitrary<SnapshotStep> = services().map((some) => (before) => {
  const wanted = some.map((each, index): ServiceObject => {
    const nodes = ['1', '2', '3', undefined][index % 4];
    return nodes === undefined ? each : { ...each, annotations: { ...each.annotations, 'weir.dev/nodes': nodes } };
  });
  return { ...before, services: wanted.reduce<readonly ServiceObject[]>(put, before.services) };
});
/** Without a mistake: so that many share a port. */
const hostSteps: fc.Arbitrary<SnapshotStep> = fc
  .record({
    path: fc.constantFrom('a/web', 'a/api', 'b/web', 'b/api', 'c/web'),
    hosts: fc.option(fc.constantFrom(...HOSTS)),
    ports: fc.subarray([81, 82, 443], { minLength: 1 }),
    pool: fc.constantFrom(undefined, undefined, 'edge'),
    createdAt: fc.nat(3),
  })
  .map(({ path, hosts, ports, pool, createdAt }) => (before) => {
    const annotations = {
      ...(hosts !== null && { 'weir.dev/hosts': hosts, 'weir.dev/tls-passthrough': 'true' }),
      ...(pool !== undefined && { 'weir.dev/pool': pool }),
    };
    const numbered = ports.map((number) => port(number, { name: `${number}-TCP` }));
    return { ...before, services: put(before.services, service(path, { annotations, createdAt, ports: numbered })) };
  });
/** At the shared port and at one of its own, now and then with a mistake. */
const tlsSteps: fc.Arbitrary<SnapshotStep> = fc
  .record({
    path: fc.constantFrom('a/web', 'a/api', 'b/web'),
    secret: fc.constantFrom('s1', 's2', 'missing', 'NONSENSE'),
    ca: fc.constantFrom(undefined, 's1', 's2'),
    hosts: fc.constantFrom(undefined, ...HOSTS),
    ports: fc.constantFrom(['82', '81'], ['82'], ['81'], ['80']),
  })
  .map(({ path, secret, ca, hosts, ports }) => (before) => {
    const annotations = {
      'weir.dev/tls-secret': secret,
      'weir.dev/tls-ports': ports.join(),
      ...(ca !== undefined && { 'weir.dev/client-ca-secret': ca }),
      ...(hosts !== undefined && { 'weir.dev/hosts': hosts }),
    };
    const numbered = [81, 82].map((number) => port(number, { name: `${number}-TCP` }));
    return { ...before, services: put(before.services, service(path, { annotations, ports: numbered })) };
  });
const secretSteps: fc.Arbitrary<SnapshotStep> = fc
  .record({
    path: fc.constantFrom('a/s1', 'a/s2', 'b/s1', 'c/s1'),
    what: fc.constantFrom('good', 'renewed', 'unusable', 'of a CA', 'gone'),
  })
  .map(({ path, what }) => (before) => ({ ...before, secrets: secretsWith(before.secrets ?? [], path, what) }));
const unreadSteps: fc.Arbitrary<SnapshotStep> = fc
  .constantFrom(undefined, 'everywhere' as const, new Set(['a']))
  .map((unread) => ({ unreadSecrets: _before, ...before }) => ({
    ...before,
    ...(unread !== undefined && { unreadSecrets: unread }),
  }));
const validitySteps: fc.Arbitrary<SnapshotStep> = fc
  .dictionary(
    fc.constantFrom('a/s1', 'a/s2', 'b/s1'),
    fc.constantFrom<CertificateValidity>('early', 'expiring', 'expired'),
  )
  .map((validity) => (before) => ({ ...before, validity: new Map(Object.entries(validity)) }));

function secretsWith(secrets: readonly SecretObject[], path: string, what: string): readonly SecretObject[] {
  const one = secret(path);
  const authorities = { kind: 'good', certificates: `CA of ${path}` } as const;
  switch (what) {
    case 'gone':
      return secrets.filter(({ namespace, name }) => `${namespace}/${name}` !== path);
    case 'unusable':
      return put(secrets, { ...one, certificate: { kind: 'unusable', why: 'is broken' } });
    case 'of a CA':
      return put(secrets, { ...one, certificate: null, authorities });
    default:
      return put(secrets, { ...secret(path, { authorities }), certificate: secret(`${path}-${what}`).certificate });
  }
}

/** Its slices follow later, or never. */
const renamingSteps: fc.Arbitrary<SnapshotStep> = fc
  .record({ index: fc.nat(20), names: fc.constantFrom(['80-TCP', '81-TCP'], ['81-TCP', '80-TCP'], ['new', 'newer']) })
  .map(({ index, names }) => (before) => {
    const renamed = before.services[index % Math.max(1, before.services.length)];
    if (renamed === undefined) return before;
    const ports = renamed.ports.map((each, at) => ({ ...each, name: names[at] ?? each.name }));
    return { ...before, services: put(before.services, { ...renamed, ports }) };
  });
/** Addresses that endpoints have, too: by a slice that somebody wrote. */
const clusterIpSteps: fc.Arbitrary<SnapshotStep> = fc
  .record({ index: fc.nat(20), ip: fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.3', undefined) })
  .map(({ index, ip }) => (before) => {
    const one = before.services[index % Math.max(1, before.services.length)];
    if (one === undefined) return before;
    const { clusterIPs: _, ...rest } = one;
    return { ...before, services: put(before.services, { ...rest, ...(ip !== undefined && { clusterIPs: [ip] }) }) };
  });
const serviceRangeSteps: fc.Arbitrary<SnapshotStep> = fc
  .constantFrom([], ['10.0.0.2/31'], ['10.0.0.0/24'])
  .map((cidrs) => (before) => ({ ...before, serviceCidrs: [{ name: 'kubernetes', cidrs }] }));
const leaving: fc.Arbitrary<SnapshotStep> = fc
  .nat(20)
  .map((index) => (before) => ({ ...before, services: without(before.services, index) }));
const sliceSteps: fc.Arbitrary<SnapshotStep> = slices().map((some) => (before) => ({
  ...before,
  slices: some.reduce<readonly SliceObject[]>(put, before.slices),
}));
const sliceLeaving: fc.Arbitrary<SnapshotStep> = fc
  .nat(20)
  .map((index) => (before) => ({ ...before, slices: without(before.slices, index) }));
const podSteps: fc.Arbitrary<SnapshotStep> = fc
  .record({
    path: fc.constantFrom('a/p1', 'a/p2', 'b/p1', 'c/p1'),
    ip: fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.3', '192.0.2.1'),
    isHost: fc.boolean(),
    isGone: fc.boolean(),
  })
  .map(({ path, ip, isHost, isGone }) => (before) => {
    const one = pod(path, ip, isHost);
    const pods = isGone
      ? before.pods.filter(({ namespace, name }) => `${namespace}/${name}` !== path)
      : put<PodObject>(before.pods, one);
    return { ...before, pods };
  });
const edge = { role: 'loadbalancer', 'weir.dev/pool': 'edge' };
export const nodeSets: readonly (readonly NodeObject[])[] = [
  [node('n1', '192.0.2.1')],
  [node('n1', '192.0.2.1'), node('n2', '192.0.2.2'), node('n3', '192.0.2.3')],
  [
    node('n1', '192.0.2.1', { unschedulable: true }),
    node('n2', '192.0.2.2'),
    node('e1', '192.0.2.9', { labels: edge }),
  ],
  [],
];
const nodeSteps: fc.Arbitrary<SnapshotStep> = fc
  .constantFrom(...nodeSets)
  .map((nodes) => (before) => ({ ...before, nodes }));
const absentSteps: fc.Arbitrary<SnapshotStep> = fc
  .dictionary(fc.constantFrom('n1', 'n2', 'n3', 'e1'), fc.constantFrom('silent' as const, 'lost' as const))
  .map((absent) => (before) => ({ ...before, absent: new Map(Object.entries(absent)) }));
const policySets: readonly (readonly TenantPolicyObject[])[] = [
  [],
  [policy('a', { namespaceSelector: team('a'), limits: { services: 1, ports: 2 } })],
  [
    policy('a', {
      namespaceSelector: team('a'),
      grants: { ...UNRESTRICTED_GRANTS, pools: ['default', 'edge'], allowedHosts: ['*.shop.example'] },
    }),
  ],
  [
    policy('a', {
      namespaceSelector: team('a'),
      tenantFrom: { kind: 'name', name: 'gold' },
      grants: {
        ...UNRESTRICTED_GRANTS,
        pools: ['edge', 'default'],
        allowedPorts: [{ from: 80, to: 81 }],
        allowedHosts: ['*.example'],
      },
    }),
    policy('b', {
      namespaceSelector: team('b'),
      tenantFrom: { kind: 'name', name: 'gold' },
      grants: {
        ...UNRESTRICTED_GRANTS,
        nodesPerService: 1,
        allowedHosts: ['x.shop.example'],
        allowedEndpointCIDRs: ['10.0.0.0/30'],
      },
      limits: { ports: 1 },
    }),
  ],
];
const policySteps: fc.Arbitrary<SnapshotStep> = fc
  .constantFrom(...policySets)
  .map((policies) => (before) => ({ ...before, policies }));
const namespaceSteps: fc.Arbitrary<SnapshotStep> = fc
  .record({ name: fc.constantFrom('a', 'b', 'c'), team: fc.constantFrom('a', 'b', 'c') })
  .map((one) => (before) => ({
    ...before,
    namespaces: put(before.namespaces, namespace(one.name, { team: one.team })),
  }));
const suspensionSteps: fc.Arbitrary<SnapshotStep> = fc
  .constantFrom<readonly SuspensionObject[]>(
    [],
    [suspension('s', { kind: 'service', namespace: 'a', service: 'web' })],
    [suspension('s', { kind: 'tenant', tenant: 'gold' }), suspension('n', { kind: 'namespace', namespace: 'c' })],
  )
  .map((suspensions) => (before) => ({ ...before, suspensions }));

export const snapshotSteps: fc.Arbitrary<SnapshotStep> = fc.oneof(
  { weight: 4, arbitrary: serviceSteps },
  { weight: 4, arbitrary: hostSteps },
  { weight: 3, arbitrary: tlsSteps },
  { weight: 3, arbitrary: secretSteps },
  unreadSteps,
  validitySteps,
  { weight: 2, arbitrary: renamingSteps },
  { weight: 2, arbitrary: leaving },
  { weight: 2, arbitrary: clusterIpSteps },
  serviceRangeSteps,
  { weight: 3, arbitrary: sliceSteps },
  sliceLeaving,
  podSteps,
  nodeSteps,
  absentSteps,
  policySteps,
  namespaceSteps,
  suspensionSteps,
);
