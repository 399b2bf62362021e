import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { entriesOf, serviceSettingsFor } from '@weir/model';
import { port, service, snapshotOf, suspension } from '../fixtures/snapshot.ts';
import { messageOf, portsOf, reasonOf, translateAfter, translateFresh } from '../fixtures/translation.ts';

describe('ownership of Services', () => {
  test('owns Services of type LoadBalancer with the class, and with `classless` those without class', () => {
    const services = [
      service('a/classed'),
      service('a/classless', { loadBalancerClass: null, ports: [port(81)] }),
      service('a/other', { loadBalancerClass: 'example.com/other', ports: [port(82)] }),
      service('a/internal', { type: 'ClusterIP', ports: [port(83)] }),
      service('a/ignored', { annotations: { 'weir.dev/ignore': 'true' }, ports: [port(84)] }),
      service('a/deleting', { deleting: true, ports: [port(85)] }),
    ];
    const names = (classless: boolean): string[] =>
      translateFresh({ services, settings: { ...snapshotOf({}).settings, classless } }).statuses.map(
        ({ name }) => name,
      );
    assert.deepEqual(names(false), ['classed']);
    assert.deepEqual(names(true), ['classed', 'classless']);
  });

  test('reports --classless if no Service names the class', () => {
    const { problems } = translateFresh({ services: [service('a/web', { loadBalancerClass: null })] });
    assert.equal(problems[0]?.code, 'NoServices');
    assert.match(
      problems[0]?.message ?? '',
      /^1 Service of type LoadBalancer has no loadBalancerClass and is ignored, .*--classless/,
    );
  });
});

describe('settings', () => {
  test('refuses an invalid annotation with its name, value and allowed values', () => {
    const translation = translateFresh({
      services: [service('a/web', { annotations: { 'weir.dev/algorithm': 'best' } })],
    });
    assert.equal(
      messageOf(translation, 'a/web'),
      'annotation weir.dev/algorithm: "best" is not allowed; use one of least-connections, round-robin, random, maglev, first',
    );
    assert.deepEqual(portsOf(translation, 'a/web'), []);
  });

  for (const [trafficDistribution, preferSameZone] of [
    [null, false],
    ['PreferSameZone', true],
    ['PreferClose', true],
    ['PreferSameNode', false],
  ] as const) {
    test(`trafficDistribution ${trafficDistribution} ${preferSameZone ? 'prefers' : 'does not prefer'} the own zone`, () => {
      const { table } = translateFresh({ services: [service('a/web', { trafficDistribution })] });
      assert.equal(entriesOf(table, 'service')[0]?.settings?.preferSameZone, preferSameZone);
    });
  }

  test('reports that the client address is lost, except where the PROXY protocol carries it', () => {
    const lost = (...protocols: readonly string[]): string | undefined => {
      const ports = protocols.map((protocol, i) => port(80 + i, { name: `p${i}`, protocol }));
      const annotations = { 'weir.dev/proxy-protocol': 'v1' };
      const services = [service('a/web', { ports, annotations, externalTrafficPolicy: 'Local' })];
      const [status] = translateFresh({ services }).statuses;
      return status?.degraded.find(({ reason }) => reason === 'SourceAddressNotPreserved')?.message;
    };
    assert.equal(lost('TCP'), undefined);
    assert.equal(lost('TCP', 'SCTP'), undefined);
    assert.match(lost('TCP', 'UDP') ?? '', /^externalTrafficPolicy is Local, but datagrams to port 81\/UDP reach/);
    const plain = translateFresh({ services: [service('a/web', { externalTrafficPolicy: 'Local' })] });
    assert.ok(plain.statuses[0]?.degraded.some(({ reason }) => reason === 'SourceAddressNotPreserved'));
  });

  test('refuses a Service with an annotation that cannot be honoured', () => {
    const translation = translateFresh({
      services: [service('a/web', { annotations: { 'weir.dev/client-ca-secret': 'ca' } })],
    });
    assert.equal(reasonOf(translation, 'a/web'), 'InvalidAnnotation');
    assert.equal(entriesOf(translation.table, 'service')[0]?.settings, null);
  });

  test('keeps the last accepted settings while the present settings are invalid', () => {
    const before = translateFresh({ services: [service('a/web', { annotations: { 'weir.dev/idle-timeout': '7s' } })] });
    const after = translateAfter(before, {
      services: [service('a/web', { annotations: { 'weir.dev/idle-timeout': 'long' } })],
    });
    assert.equal(entriesOf(after.table, 'service')[0]?.settings?.idleTimeoutMs, 7000);
    assert.equal(reasonOf(after, 'a/web'), 'InvalidAnnotation');
    assert.deepEqual(portsOf(after, 'a/web'), ['n1:80']);
  });

  test('prefers the source ranges of the field to the legacy annotation, and accepts blanks and host bits', () => {
    const legacy = { 'service.beta.kubernetes.io/load-balancer-source-ranges': '192.0.2.0/24' };
    const ranges = (sourceRanges: string[]): readonly string[] | undefined =>
      entriesOf(
        translateFresh({ services: [service('a/web', { annotations: legacy, sourceRanges })] }).table,
        'service',
      )[0]?.settings?.sourceRanges;
    assert.deepEqual(ranges([' 10.1.2.3/8 ', 'fd00::1/8']), ['10.0.0.0/8', 'fd00::/8']);
    assert.deepEqual(ranges([]), ['192.0.2.0/24']);
  });

  test('refuses a legacy list with an empty part instead of admitting every client', () => {
    const annotations = (ranges: string): Record<string, string> => ({
      'service.beta.kubernetes.io/load-balancer-source-ranges': ranges,
    });
    const reason = (ranges: string): string =>
      reasonOf(translateFresh({ services: [service('a/web', { annotations: annotations(ranges) })] }), 'a/web');
    assert.deepEqual(['', '  ', ',', '10.0.0.0/8,'].map(reason), [
      'Accepted',
      'Accepted',
      'InvalidAnnotation',
      'InvalidAnnotation',
    ]);
  });

  test('refuses a Service with an invalid source range', () => {
    const translation = translateFresh({ services: [service('a/web', { sourceRanges: ['10.0.0.0'] })] });
    assert.match(messageOf(translation, 'a/web'), /"10\.0\.0\.0" is not a CIDR/);
  });

  test('refuses more than 10,000 source ranges with their count, and keeps the last accepted settings', () => {
    const many = Array.from({ length: 10_001 }, (_, i) => `10.${i >> 8}.${i & 255}.0/24`);
    const legacy = { 'service.beta.kubernetes.io/load-balancer-source-ranges': many.join(',') };
    const before = translateFresh({ services: [service('a/web', { sourceRanges: many.slice(1) })] });
    const most = 'ranges are too many: a Service may have at most 10000; merge adjacent ranges';
    assert.equal(reasonOf(before, 'a/web'), 'Accepted');
    for (const [wrong, where] of [
      [{ sourceRanges: many }, 'spec.loadBalancerSourceRanges'],
      [{ annotations: legacy }, 'annotation service.beta.kubernetes.io/load-balancer-source-ranges'],
    ] as const) {
      const after = translateAfter(before, { services: [service('a/web', wrong)] });
      assert.equal(reasonOf(after, 'a/web'), 'InvalidAnnotation');
      assert.ok(messageOf(after, 'a/web').startsWith(`${where}: 10001 ${most}`), messageOf(after, 'a/web'));
      const [entry] = entriesOf(after.table, 'service');
      assert.deepEqual(entry?.settings?.sourceRanges.toSorted(), many.slice(1).sort());
    }
  });

  test('parses the settings of one Service object once', () => {
    const object = service('a/web', { sourceRanges: ['10.0.0.0/8'] });
    assert.equal(serviceSettingsFor(object), serviceSettingsFor(object));
    assert.notEqual(serviceSettingsFor(object), serviceSettingsFor({ ...object }));
  });
});

test('warns of a Suspension without target, which can heal', () => {
  const { problems } = translateFresh({
    services: [service('a/web')],
    suspensions: [
      suspension('typo', { kind: 'service', namespace: 'a', service: 'wbe' }),
      suspension('right', { kind: 'tenant', tenant: 'a' }),
    ],
  });
  assert.deepEqual(
    problems.filter(({ code }) => code === 'UnknownTarget').map(({ subject }) => subject),
    ['Suspension typo'],
  );
});
