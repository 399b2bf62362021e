// The manifests of a tenant who is careless or worse: objects that are right, objects that are nearly so, and text that is nothing.
import fc from 'fast-check';

/** What it may want to hit. */
export interface AttackTargets {
  /** Where another tenant is served, and by whom. */
  readonly listeners: readonly string[];
  readonly tcpPort: number;
  readonly udpPort: number;
  /** Which the fleet shares by host names. */
  readonly sharedPort: number;
  readonly backends: readonly number[];
}

/** By name, the text of each file; of a name that is left out there is none. */
export type ManifestFiles = Readonly<Record<string, string>>;

export function hostileManifests(targets: AttackTargets): fc.Arbitrary<ManifestFiles> {
  const of = (pick: ValueChooser): fc.Arbitrary<unknown>[] => [
    serviceOf(targets, pick),
    sharedPortServiceOf(targets, pick),
    sliceOf(targets, pick),
  ];
  const right = fc.array(fc.oneof(...of(validValues)), { minLength: 1, maxLength: 6 });
  const wrong = fc.array(
    fc.oneof(...of(validValues), ...of(mostlyValidValues), namespaces, fc.jsonValue({ maxDepth: 3 })),
    {
      maxLength: 8,
    },
  );
  const text = fc.oneof(right, wrong).map((all) => all.map((each) => JSON.stringify(each)).join('\n---\n'));
  const nonsense = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constant('a: [1\n---\nb: {'));
  const file = fc.oneof({ arbitrary: text, weight: 8 }, { arbitrary: nonsense, weight: 1 });
  return fc.record({ 'one.yaml': file, 'two.yaml': file }, { requiredKeys: [] }) as fc.Arbitrary<ManifestFiles>;
}

/** A value that the API server would take, or one that it would not. */
type ValueChooser = (right: readonly unknown[], wrong: readonly unknown[]) => fc.Arbitrary<unknown>;

const validValues: ValueChooser = (right) => fc.constantFrom(...right);
const mostlyValidValues: ValueChooser = (right, wrong) =>
  fc.oneof({ arbitrary: fc.constantFrom(...right), weight: 4 }, { arbitrary: fc.constantFrom(...wrong), weight: 1 });

const names = fc.constantFrom('web', 'api', 'db');
const metadata = <T>(more: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.tuple(names, more).map(([name, rest]) => ({ namespace: 'a', name, ...rest }));

/** Also what the API server takes and Weir refuses, though rarely: few Services ask for anything. */
const annotationsOf = (pick: ValueChooser): fc.Arbitrary<object> =>
  fc.oneof(
    { arbitrary: fc.constant({}), weight: 3 },
    fc.record(
      {
        'weir.dev/algorithm': pick(['maglev', 'first', 'random'], ['fastest', 7]),
        'weir.dev/nodes': pick(['1', '2', '16'], ['0', 'all']),
        'weir.dev/pool': pick(['default'], ['gold', '']),
        'weir.dev/proxy-protocol': pick(['v1', 'v2'], ['v3']),
        'weir.dev/health-check': pick(['tcp', 'off'], ['ping']),
        'weir.dev/max-connections': pick(['0', '5'], ['many', '9E']),
        'weir.dev/out-bits-per-second': pick(['1k', '1G'], ['-1']),
      },
      { requiredKeys: [] },
    ),
    fc.constantFrom({ 'weir.dev/__proto__': 'x' }, { 'weir.dev/nodes': 'all' }),
  );

/** Of hosts: its own, those of b, and whatever stands above or below these. */
const hostClaimsOf = (pick: ValueChooser): fc.Arbitrary<object> =>
  fc
    .uniqueArray(
      pick(
        [
          'a.example.com',
          '*.example.com',
          'b.example.com',
          'B.example.com',
          'x.b.example.com',
          'www.b.test',
          '*.b.test',
        ],
        ['*.test', '*', 'b.example.com.', 'bücher.example.com', ''],
      ),
      { minLength: 1, maxLength: 2 },
    )
    .chain((hosts) =>
      fc.record(
        { 'weir.dev/hosts': fc.constant(hosts.join()), 'weir.dev/tls-passthrough': pick(['true'], ['yes', 'false']) },
        { requiredKeys: pick === validValues ? ['weir.dev/hosts', 'weir.dev/tls-passthrough'] : ['weir.dev/hosts'] },
      ),
    );

/** What b has, ports that are free, and one that nobody may have. */
function portsOf({ tcpPort, udpPort, sharedPort }: AttackTargets, pick: ValueChooser): fc.Arbitrary<unknown> {
  const port = fc.record(
    {
      name: fc.constantFrom('main', 'more', 'voice'),
      port: pick([tcpPort, udpPort, sharedPort, sharedPort, 9_000, 9_001, 9_001, 9_002], [22, 0, 70_000, '80', null]),
      protocol: pick(['TCP', 'TCP', 'UDP'], ['SCTP', 'tcp']),
      nodePort: pick([null, 31_000], [-1]),
    },
    { requiredKeys: pick === validValues ? ['name', 'port', 'protocol'] : ['port'] },
  );
  return pick === validValues
    ? fc.uniqueArray(port, { minLength: 1, maxLength: 2, selector: ({ name }) => name })
    : fc.array(port, { maxLength: 3 });
}

function serviceOf(
  targets: AttackTargets,
  pick: ValueChooser,
  { annotations = annotationsOf(pick), ports = portsOf(targets, pick) } = {},
): fc.Arbitrary<unknown> {
  const spec = fc.record(
    {
      type: pick(['LoadBalancer', 'LoadBalancer', 'LoadBalancer', 'ClusterIP'], ['Balancer']),
      loadBalancerClass: pick(['weir.dev/weir'], ['weir.dev/other', 5]),
      ports,
      loadBalancerSourceRanges: pick([['0.0.0.0/0'], ['10.0.0.0/8']], [['nonsense'], 'all']),
      externalTrafficPolicy: pick(['Local', 'Cluster'], ['Elsewhere']),
      sessionAffinity: pick(['ClientIP', 'None'], ['Cookie']),
      ipFamilies: pick([['IPv4'], ['IPv4'], ['IPv6']], [['IPv5']]),
    },
    { requiredKeys: ['type', 'loadBalancerClass', 'ports'] },
  );
  return fc
    .tuple(metadata(annotations.map((all) => ({ annotations: all }))), spec)
    .map(([meta, own]) => ({ apiVersion: 'v1', kind: 'Service', metadata: meta, spec: own }));
}

/** On the port of the fleet, for hosts. */
function sharedPortServiceOf(targets: AttackTargets, pick: ValueChooser): fc.Arbitrary<unknown> {
  const ports = fc.constant([{ name: 'main', port: targets.sharedPort, protocol: 'TCP' }]);
  return serviceOf(targets, pick, { annotations: hostClaimsOf(pick), ports });
}

/** Of its own Services, and as if it were of those of the other tenant; to the endpoints and the listeners of that one. */
function sliceOf(
  { listeners, tcpPort, sharedPort, backends }: AttackTargets,
  pick: ValueChooser,
): fc.Arbitrary<unknown> {
  const labels = fc
    .constantFrom('web', 'api', 'db', 'echo', 'voice', 'secure')
    .map((service) => ({ labels: { 'kubernetes.io/service-name': service } }));
  const port = fc.record(
    { name: fc.constantFrom('main', 'more', 'voice'), port: pick([...backends, tcpPort, sharedPort], [0, 'http']) },
    { requiredKeys: ['port'] },
  );
  const endpoint = fc.record({
    addresses: pick(
      ['127.0.0.1', ...listeners].map((address) => [address]),
      [[], ['::1'], ['nonsense'], 'all'],
    ),
    conditions: fc.record({ ready: fc.boolean(), serving: fc.boolean(), terminating: fc.boolean() }),
  });
  const content = fc.record({
    addressType: pick(['IPv4'], ['IPv6', 'FQDN']),
    ports: fc.array(port, { maxLength: 3 }),
    endpoints: fc.array(endpoint, { maxLength: 3 }),
  });
  const apiVersion = 'discovery.k8s.io/v1';
  return fc
    .tuple(metadata(labels), content)
    .map(([meta, own]) => ({ apiVersion, kind: 'EndpointSlice', metadata: meta, ...own }));
}

const namespaces = fc
  .dictionary(fc.constantFrom('team', 'constructor', '__proto__'), fc.constantFrom('a', 'b'))
  .map((labels) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a', labels } }));
