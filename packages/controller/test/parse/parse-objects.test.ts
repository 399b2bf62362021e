import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseNode, parsePod, parseServiceCidr } from '../../src/parse/cluster-objects.ts';
import { parseService } from '../../src/parse/service.ts';
import { parseSuspension } from '../../src/parse/suspension.ts';

const metadata = { uid: 'u1', namespace: 'shop', name: 'web' };
const service = (spec: object, more: object = {}): object => ({ metadata: { ...metadata, ...more }, spec });
const messages = (result: { problems: readonly { message: string }[] }): string[] =>
  result.problems.map((each) => each.message);

describe('a Service', () => {
  test('gets the defaults of an API server', () => {
    const { object, problems } = parseService(service({ ports: [{ port: 80 }], selector: { app: 'web' } }));
    assert.deepEqual(problems, []);
    assert.deepEqual(object, {
      ...metadata,
      labels: {},
      annotations: {},
      createdAt: null,
      type: 'ClusterIP',
      loadBalancerClass: null,
      ports: [{ name: null, port: 80, protocol: 'TCP', appProtocol: null, nodePort: null }],
      hasSelector: true,
      clientIpAffinitySeconds: null,
      sourceRanges: [],
      externalTrafficPolicy: 'Cluster',
      trafficDistribution: null,
      publishNotReadyAddresses: false,
      ipFamilies: [],
      publishedIPs: [],
      deleting: false,
    });
  });

  test('keeps a trafficDistribution that this version does not know', () => {
    const spec = { ports: [{ port: 80 }], trafficDistribution: 'PreferSomethingNew' };
    const { object, problems } = parseService(service(spec));
    assert.deepEqual([object?.trafficDistribution, problems], ['PreferSomethingNew', []]);
  });

  test('keeps only the annotations that Weir reads', () => {
    const read = { 'weir.dev/nodes': '3', 'service.kubernetes.io/topology-mode': 'Auto' };
    const annotations = { ...read, 'kubectl.kubernetes.io/last-applied-configuration': '{…}' };
    const { object } = parseService(service({ ports: [{ port: 80 }] }, { annotations }));
    assert.deepEqual(object?.annotations, read);
  });

  test('keeps legacy source ranges apart from the field, so that a mistake names its place', () => {
    const annotations = { 'service.beta.kubernetes.io/load-balancer-source-ranges': '10.0.0.0/8, nonsense' };
    const legacy = parseService(service({ ports: [{ port: 80 }] }, { annotations })).object;
    assert.deepEqual([legacy?.sourceRanges, legacy?.annotations], [[], annotations]);
    const spec = { ports: [{ port: 80 }], loadBalancerSourceRanges: ['1.2.3.0/24'] };
    const both = parseService(service(spec, { annotations })).object;
    assert.deepEqual([both?.sourceRanges, both?.annotations], [['1.2.3.0/24'], annotations]);
  });

  test('has no affinity if only the timeout is set', () => {
    const config = { sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } };
    const spec = { ports: [{ port: 80 }], ...config };
    assert.equal(parseService(service({ ...spec, sessionAffinity: 'None' })).object?.clientIpAffinitySeconds, null);
    assert.equal(parseService(service({ ...spec, sessionAffinity: 'ClientIP' })).object?.clientIpAffinitySeconds, 60);
    const plain = service({ ports: [{ port: 80 }], sessionAffinity: 'ClientIP' });
    assert.equal(parseService(plain).object?.clientIpAffinitySeconds, 10_800);
    const mistakesWith = (timeoutSeconds: number): readonly string[] =>
      messages(parseService(service({ ...spec, sessionAffinityConfig: { clientIP: { timeoutSeconds } } })));
    assert.deepEqual(mistakesWith(86_400), []);
    assert.match(
      mistakesWith(86_401).join(),
      /^spec\.sessionAffinityConfig\.clientIP\.timeoutSeconds is 86401; .*86400/,
    );
  });

  test('reports every mistake at once, with its place and the allowed values', () => {
    const result = parseService({
      metadata: { uid: 'u1', namespace: 'shop', name: 'Web', annotations: { 'weir.dev/nodes': 2 } },
      spec: {
        type: 'LoadBalancer',
        ports: [
          { name: 'a', port: 99_999, protocol: 'tcp' },
          { name: 'a', port: '80', targetPort: 'Not A Port' },
        ],
        sessionAffinity: 'Sticky',
        externalTrafficPolicy: true,
      },
    });
    assert.equal(result.object, undefined);
    assert.deepEqual(messages(result).sort(), [
      'metadata.annotations["weir.dev/nodes"] is 2; use text (in quotes, if it looks like a number)',
      'metadata.name is "Web"; use lower-case letters, digits and "-", at most 63, beginning and ending with a letter or digit',
      'spec.externalTrafficPolicy is true; use Cluster, Local',
      'spec.ports[0].port is 99999; use a whole number from 1 to 65535',
      'spec.ports[0].protocol is "tcp"; use TCP, UDP, SCTP',
      'spec.ports[1].name is "a"; use another name: two ports have this one',
      'spec.ports[1].port is "80"; use a whole number from 1 to 65535',
      'spec.ports[1].targetPort is "Not A Port"; use a port number, or the name of a port (at most 15 characters)',
      'spec.sessionAffinity is "Sticky"; use None, ClientIP',
    ]);
    assert.ok(result.problems.every((each) => each.subject === 'Service shop/Web' && each.code === 'InvalidObject'));
  });

  test('may use one port number for TCP and UDP, but not twice for one protocol', () => {
    const dns = [
      { name: 'tcp', port: 53 },
      { name: 'udp', port: 53, protocol: 'UDP' },
    ];
    assert.deepEqual(parseService(service({ ports: dns })).problems, []);
    const twice = parseService(service({ ports: [...dns, { name: 'more', port: 53 }] }));
    assert.deepEqual(messages(twice), ['spec.ports[2].port is 53; use another number: two ports are 53/TCP']);
  });

  test('without a name reports the missing name and not a missing UID', () => {
    const nameless = parseService({ metadata: { namespace: 'shop' }, spec: { ports: [{ port: 80 }] } });
    assert.deepEqual(
      messages(nameless).map((message) => message.split(';')[0]),
      ['metadata.name is missing'],
    );
  });

  test('reports NaN and infinity in ports as such', () => {
    for (const port of [Number.NaN, Number.POSITIVE_INFINITY]) {
      assert.deepEqual(messages(parseService(service({ ports: [{ port }] }))), [
        `spec.ports[0].port is ${port}; use a whole number from 1 to 65535`,
      ]);
    }
  });

  test('that is not an object is a problem, never an exception', () => {
    for (const raw of [
      null,
      7,
      'x',
      [],
      { metadata: [] },
      { metadata: null, spec: 3 },
      { spec: { ports: [null, 4] } },
    ]) {
      const result = parseService(raw);
      assert.equal(result.object, undefined);
      assert.ok(result.problems.length > 0);
    }
  });
});

test('a pod that has ended has no addresses, since another pod may have them', () => {
  const pod = (phase: string): object => ({
    metadata,
    status: { phase, podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }] },
  });
  assert.deepEqual(parsePod(pod('Running')).object?.ips, ['10.0.0.1', 'fd00::1']);
  assert.deepEqual(parsePod(pod('Succeeded')).object?.ips, []);
  assert.deepEqual(parsePod(pod('Failed')).object?.ips, []);
});

test('a Service has its cluster IPs, and a headless Service has none', () => {
  const ips = (spec: object): readonly string[] | undefined => parseService(service(spec)).object?.clusterIPs;
  assert.deepEqual(ips({ clusterIPs: ['10.96.0.7', 'fd00::7'] }), ['10.96.0.7', 'fd00::7']);
  assert.equal(ips({ clusterIPs: ['None'] }), undefined);
  assert.equal(ips({}), undefined);
});

test('a ServiceCIDR has its ranges', () => {
  const read = (spec: object) => parseServiceCidr({ metadata: { name: 'kubernetes' }, spec });
  assert.deepEqual(read({ cidrs: ['10.96.0.0/16', 'fd00:96::/112'] }).object?.cidrs, ['10.96.0.0/16', 'fd00:96::/112']);
  assert.deepEqual(messages(read({ cidrs: ['10.96.0.0/33'] })).length, 1);
});

test('a node has its addresses by type in the given order', () => {
  const { object } = parseNode({
    metadata: { uid: 'n', name: 'a', labels: { role: 'loadbalancer' } },
    status: {
      addresses: [
        { type: 'Hostname', address: 'a' },
        { type: 'InternalIP', address: '10.0.0.2' },
        { type: 'InternalIP', address: 'fd00::2' },
        { type: 'ExternalIP', address: '1.2.3.4' },
      ],
    },
  });
  assert.deepEqual([object?.internalIPs, object?.externalIPs], [['10.0.0.2', 'fd00::2'], ['1.2.3.4']]);
  assert.deepEqual(object?.labels, { role: 'loadbalancer' });
});

describe('a Suspension', () => {
  const suspension = (spec: object): object => ({ metadata: { uid: 's', name: 'x' }, spec });

  test('has its target, message and end time', () => {
    const target = { type: 'Service', namespace: 'shop', service: 'web' };
    const { object } = parseSuspension(suspension({ target, message: 'abuse', until: '2026-07-01T02:00:00+02:00' }));
    assert.deepEqual(object?.target, { kind: 'service', namespace: 'shop', service: 'web' });
    assert.equal(object?.until, Date.UTC(2026, 6, 1));
    assert.deepEqual([object?.message, object?.rule], ['abuse', null]);
  });

  test('has the user of its annotation, else the program that wrote its spec last', () => {
    const spec = { target: { type: 'Tenant', tenant: 'shop' } };
    const madeBy = (more: object): string | null | undefined =>
      parseSuspension({ metadata: { uid: 's', name: 'x', ...more }, spec }).object?.madeBy;
    const entry = (manager: string, time: string, fields: object): object => ({ manager, time, fieldsV1: fields });
    const managedFields = [
      entry('kubectl-edit', '2026-01-02T00:00:00Z', { 'f:spec': {} }),
      entry('kubectl-create', '2026-01-01T00:00:00Z', { 'f:spec': {} }),
      entry('kubectl-label', '2026-01-03T00:00:00Z', { 'f:metadata': {} }),
    ];
    assert.equal(madeBy({ annotations: { 'weir.dev/made-by': 'alice' }, managedFields }), 'alice');
    assert.equal(madeBy({ managedFields }), 'an unknown user of kubectl-edit');
    assert.equal(madeBy({}), null);
    assert.equal(madeBy({ managedFields: 'x' }), null);
  });

  test('is refused if its end is a day that the calendar does not have', () => {
    const target = { type: 'Tenant', tenant: 'shop' };
    assert.deepEqual(messages(parseSuspension(suspension({ target, until: '2027-02-30T00:00:00Z' }))), [
      'spec.until is "2027-02-30T00:00:00Z"; use a time such as 2026-07-01T12:00:00Z',
    ]);
  });

  test('is refused if its target has fields that its type does not use', () => {
    const target = { type: 'Tenant', tenant: 'shop', service: 'web' };
    assert.deepEqual(messages(parseSuspension(suspension({ target }))), [
      'spec.target.service is "web"; remove it: type Tenant uses only tenant',
    ]);
  });
});
