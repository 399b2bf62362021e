// Generates the manifests of a careless or malicious tenant: valid objects, almost valid objects, and arbitrary text.
import fc from 'fast-check';

/** The resources of another tenant that the generated objects try to claim. */
export interface AttackTargets {
  /** Addresses of the listeners of another tenant. */
  readonly listeners: readonly string[];
  readonly tcpPort: number;
  readonly udpPort: number;
  /** The port that tenants share by host name. */
  readonly sharedPort: number;
  readonly backends: readonly number[];
}

/** The text of each file, by file name. A file that is missing in this record is deleted. */
export type ManifestFiles = Readonly<Record<string, string>>;

export function hostileManifests(targets: AttackTargets): fc.Arbitrary<ManifestFiles> {
  const objectsWith = (pick: ValueChooser): fc.Arbitrary<unknown>[] => [
    serviceOf(targets, pick),
    sharedPortServiceOf(targets, pick),
    sliceOf(targets, pick),
  ];
  const validObjects = fc.array(fc.oneof(...objectsWith(validValues)), { minLength: 1, maxLength: 6 });
  const mixedObjects = fc.array(
    fc.oneof(...objectsWith(validValues), ...objectsWith(mostlyValidValues), namespaces, fc.jsonValue({ maxDepth: 3 })),
    {
      maxLength: 8,
    },
  );
  const text = fc
    .oneof(validObjects, mixedObjects)
    .map((all) => all.map((each) => JSON.stringify(each)).join('\n---\n'));
  const nonsense = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constant('a: [1\n---\nb: {'));
  const file = fc.oneof({ arbitrary: text, weight: 8 }, { arbitrary: nonsense, weight: 1 });
  return fc.record({ 'one.yaml': file, 'two.yaml': file }, { requiredKeys: [] }) as fc.Arbitrary<ManifestFiles>;
}

/** Chooses between values that the API server would accept and values that the API server would reject. */
type ValueChooser = (valid: readonly unknown[], invalid: readonly unknown[]) => fc.Arbitrary<unknown>;

const validValues: ValueChooser = (valid) => fc.constantFrom(...valid);
const mostlyValidValues: ValueChooser = (valid, invalid) =>
  fc.oneof({ arbitrary: fc.constantFrom(...valid), weight: 4 }, { arbitrary: fc.constantFrom(...invalid), weight: 1 });

const names = fc.constantFrom('web', 'api', 'db');
const metadata = <T>(more: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.tuple(names, more).map(([name, rest]) => ({ namespace: 'a', name, ...rest }));

/** Generates annotations: mostly none, otherwise some with values from `pick`, or one that the API server accepts and Weir refuses. */
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

/** Generates annotations that claim hosts of tenant a, hosts of tenant b, and parent and child domains of these hosts. */
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

/** Generates ports of a Service: ports of tenant b, free ports, and invalid or reserved ports. */
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

/** Generates a Service on the shared port that claims hosts. */
function sharedPortServiceOf(targets: AttackTargets, pick: ValueChooser): fc.Arbitrary<unknown> {
  const ports = fc.constant([{ name: 'main', port: targets.sharedPort, protocol: 'TCP' }]);
  return serviceOf(targets, pick, { annotations: hostClaimsOf(pick), ports });
}

/**
 * Generates an EndpointSlice for the name of a Service of tenant a or b. The endpoints in the slice may be backends and listeners of tenant
 * b.
 */
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
