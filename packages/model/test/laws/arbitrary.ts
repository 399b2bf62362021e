// Random fleets, small enough that Services collide on ports, tenants on names, and slices on addresses.
import type { NodeObject, ServiceObject, SliceObject, Snapshot, TenantPolicyObject } from '@weir/model';
import fc from 'fast-check';
import { namespace, node, policy, port, service, slice, snapshotOf, team } from '../build/snapshot.ts';

const NAMESPACES = ['a', 'b', 'c'] as const;
/** So few that Services want the same ones, and some under a name that no policy of these tests allows. */
export const HOSTS = [
  'x.shop.example',
  'y.shop.example',
  'x.shop.example, y.shop.example',
  '*.shop.example',
  'x.shop.example, other.example',
] as const;

export const services = (namespaces: readonly string[] = NAMESPACES): fc.Arbitrary<ServiceObject[]> =>
  fc.uniqueArray(
    fc
      .record({
        namespace: fc.constantFrom(...namespaces),
        name: fc.constantFrom('web', 'api', 'db'),
        ports: fc.uniqueArray(
          fc.record({ port: fc.constantFrom(22, 80, 81, 82), protocol: fc.constantFrom('TCP', 'TCP', 'TCP', 'UDP') }),
          { minLength: 1, maxLength: 3, selector: ({ port, protocol }) => `${port}${protocol}` },
        ),
        createdAt: fc.option(fc.nat(3)),
        algorithm: fc.constantFrom(undefined, 'round-robin', 'nonsense'),
        sourceRanges: fc.constantFrom<string[]>([], ['10.0.0.0/8'], ['nonsense']),
        isPublished: fc.boolean(),
        hosts: fc.constantFrom(undefined, ...HOSTS),
      })
      .map(({ namespace, name, ports, createdAt, algorithm, sourceRanges, isPublished, hosts }) =>
        service(`${namespace}/${name}`, {
          ports: ports.map(({ port: number, protocol }) => port(number, { name: `${number}-${protocol}`, protocol })),
          createdAt,
          sourceRanges,
          annotations: {
            ...(algorithm !== undefined && { 'weir.dev/algorithm': algorithm }),
            ...(hosts !== undefined && { 'weir.dev/hosts': hosts, 'weir.dev/tls-passthrough': 'true' }),
          },
          publishedIPs: isPublished ? ['192.0.2.1'] : [],
        }),
      ),
    { maxLength: 7, selector: ({ uid }) => uid },
  );

const CONDITIONS = [
  { ready: true, serving: true, terminating: false },
  { ready: false, serving: false, terminating: false },
  { ready: false, serving: true, terminating: true },
] as const;

export const slices = (namespaces: readonly string[] = NAMESPACES): fc.Arbitrary<SliceObject[]> =>
  fc.uniqueArray(
    fc
      .record({
        path: fc.tuple(fc.constantFrom(...namespaces), fc.constantFrom('web', 'api', 'db')),
        number: fc.nat(2),
        addresses: fc.uniqueArray(fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'), { maxLength: 4 }),
        ports: fc.uniqueArray(fc.constantFrom('80-TCP', '81-TCP', '82-TCP'), { maxLength: 3 }),
        conditions: fc.constantFrom(...CONDITIONS),
        zone: fc.constantFrom(null, 'a', 'b'),
      })
      .map(({ path: [namespace, name], number, addresses, ports, conditions, zone }) => {
        const base = slice(`${namespace}/${name}`, addresses, {
          name: `${name}-${number}`,
          ports: ports.map((portName, i) => ({ name: portName, port: 9000 + i, protocol: 'TCP' })),
        });
        return { ...base, endpoints: base.endpoints.map((endpoint) => ({ ...endpoint, zone, ...conditions })) };
      }),
    { maxLength: 6, selector: ({ namespace, name }) => `${namespace}/${name}` },
  );

const nodes: fc.Arbitrary<NodeObject[]> = fc.constantFrom(
  [node('n1', '192.0.2.1')],
  [node('n1', '192.0.2.1'), node('n2', '192.0.2.2')],
  [node('n1', '192.0.2.1', { labels: { role: 'loadbalancer', 'topology.kubernetes.io/zone': 'a' } })],
  [],
);

const policies: fc.Arbitrary<TenantPolicyObject[]> = fc.constantFrom(
  [],
  [policy('a', { namespaceSelector: team('a'), limits: { services: 1, ports: 2 } })],
  [
    policy('a', { namespaceSelector: team('a'), limits: { services: 2 } }),
    policy('b', { namespaceSelector: team('b'), limits: { ports: 1 } }),
  ],
);

export const snapshots: fc.Arbitrary<Snapshot> = fc
  .record({ services: services(), slices: slices(), nodes, policies })
  .map((parts) => snapshotOf({ ...parts, namespaces: NAMESPACES.map((name) => namespace(name, { team: name })) }));
