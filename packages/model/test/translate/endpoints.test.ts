import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  buildPool,
  EMPTY_POOL,
  entriesOf,
  NO_ALLOCATIONS,
  type ServiceObject,
  type SliceObject,
  type Snapshot,
  type Translation,
  Translator,
  UNRESTRICTED_GRANTS,
  updateEndpointStats,
} from '@weir/model';
import { pod, policy, port, service, slice, snapshotOf } from '../fixtures/snapshot.ts';
import { endpointsOf, messageOf, portsOf, reasonOf, translateAfter, translateFresh } from '../fixtures/translation.ts';

describe('endpoints', () => {
  test('merges the endpoints of all slices', () => {
    const slices = [slice('a/web', ['10.0.0.1', '10.0.0.2']), slice('a/web', ['10.0.0.3'], { name: 'web-2' })];
    assert.deepEqual(endpointsOf(translateFresh({ services: [service('a/web')], slices })), [
      '10.0.0.1:8080',
      '10.0.0.2:8080',
      '10.0.0.3:8080',
    ]);
  });

  test('takes the number of a named port from each slice', () => {
    const services = [service('a/web', { ports: [port(80, { name: 'http' })] })];
    const slices = [8080, 9090].map((number, i) =>
      slice('a/web', [`10.0.0.${i}`], { name: `web-${i}`, ports: [{ name: 'http', port: number, protocol: 'TCP' }] }),
    );
    assert.deepEqual(endpointsOf(translateFresh({ services, slices })), ['10.0.0.0:8080', '10.0.0.1:9090']);
  });

  test('uses ready endpoints; if there are none, terminating endpoints that still serve', () => {
    const ready = { addresses: ['10.0.0.1'], zone: null, ready: true, serving: true, terminating: false };
    const leaving = { addresses: ['10.0.0.2'], zone: null, ready: false, serving: true, terminating: true };
    const sick = { addresses: ['10.0.0.3'], zone: null, ready: false, serving: false, terminating: false };
    const used = (...endpoints: (typeof ready)[]): string[] =>
      endpointsOf(translateFresh({ services: [service('a/web')], slices: [slice('a/web', [], { endpoints })] }));
    assert.deepEqual(used(ready, leaving, sick), ['10.0.0.1:8080']);
    assert.deepEqual(used(leaving, sick), ['10.0.0.2:8080']);
    assert.deepEqual(used({ ...sick, serving: true }), []);
    assert.deepEqual(used({ ...sick, terminating: true }), []);
    assert.deepEqual(used(sick), []);
  });

  describe('of a renamed port', () => {
    const named = (...names: readonly string[]): readonly SliceObject[] => [
      slice('a/web', ['10.0.0.1'], { ports: names.map((name, i) => ({ name, port: 8080 + i, protocol: 'TCP' })) }),
    ];
    const web = (ports: readonly (string | null)[], more: Partial<ServiceObject> = {}): ServiceObject =>
      service('a/web', { ports: ports.map((name, i) => port(80 + i, { name })), ...more });
    const before = translateFresh({ services: [web(['http'])], slices: named('http') });

    test('keep the former name until the slices carry the new name, however often the slices change', () => {
      const renamed = translateAfter(before, { services: [web(['web'])], slices: named('http') });
      assert.deepEqual(endpointsOf(renamed), ['10.0.0.1:8080']);
      const again = translateAfter(renamed, { services: [web(['www'])], slices: named('http', 'other') });
      assert.deepEqual(endpointsOf(again), ['10.0.0.1:8080']);
      const followed = translateAfter(again, { services: [web(['www'])], slices: named('other', 'www') });
      assert.deepEqual(endpointsOf(followed), ['10.0.0.1:8081']);
      assert.deepEqual(endpointsOf(translateAfter(followed, { services: [web(['www'])], slices: named('http') })), []);
    });

    test('do not use a former name that another port of the Service has now', () => {
      const after = translateAfter(before, { services: [web(['new', 'http'])], slices: named('http') });
      assert.deepEqual(
        entriesOf(after.table, 'endpoints').map(({ port: number }) => number),
        [81],
      );
    });

    test('ignore the former name for hand-written slices and for a Service that was never served under it', () => {
      const own = { hasSelector: false };
      const byHand = translateFresh({ services: [web(['http'], own)], slices: named('http') });
      assert.deepEqual(
        endpointsOf(translateAfter(byHand, { services: [web(['web'], own)], slices: named('http') })),
        [],
      );
      assert.deepEqual(endpointsOf(translateFresh({ services: [web(['web'])], slices: named('http') })), []);
    });
  });

  test('carry the zone of their slice', () => {
    const near = { addresses: ['10.0.0.1'], zone: 'a', ready: true, serving: true, terminating: false };
    const lost = { ...near, addresses: ['10.0.0.2'], zone: null };
    const slices = [slice('a/web', [], { endpoints: [near, lost] })];
    const [entry] = entriesOf(translateFresh({ services: [service('a/web')], slices }).table, 'endpoints');
    assert.deepEqual(entry?.endpoints, [
      { address: '10.0.0.1', port: 8080, zone: 'a' },
      { address: '10.0.0.2', port: 8080 },
    ]);
  });

  test('are preferred by hinted zone or by own zone, as the Service requests', () => {
    const near = { addresses: ['10.0.0.1'], zone: 'a', ready: true, serving: true, terminating: false };
    const hinted = { ...near, addresses: ['10.0.0.2'], hintedZones: ['b'] };
    const slices = [slice('a/web', [], { endpoints: [near, hinted] })];
    const zonesOf = (trafficDistribution: string | null, annotations: Record<string, string> = {}): unknown => {
      const { table } = translateFresh({ services: [service('a/web', { trafficDistribution, annotations })], slices });
      const zones = entriesOf(table, 'endpoints').flatMap(({ endpoints }) => endpoints.map(({ zone }) => zone));
      return [entriesOf(table, 'service')[0]?.settings?.preferSameZone, ...zones];
    };
    const mode = 'service.kubernetes.io/topology-mode';
    assert.deepEqual(zonesOf('PreferClose'), [true, 'a', 'b']);
    assert.deepEqual(zonesOf(null, { [mode]: 'Auto' }), [true, undefined, 'b']);
    assert.deepEqual(zonesOf('PreferClose', { [mode]: 'Auto' }), [true, undefined, 'b']);
    assert.deepEqual(zonesOf(null, { 'service.kubernetes.io/topology-aware-hints': 'auto' }), [true, undefined, 'b']);
    assert.deepEqual(zonesOf(null, { [mode]: 'Disabled' }), [false, 'a', 'a']);
    assert.deepEqual(zonesOf(null), [false, 'a', 'a']);
  });

  test('are preferred in all of their hinted zones', () => {
    const all = { zone: 'a', ready: true, serving: true, terminating: false };
    const hinted = { ...all, addresses: ['10.0.0.1'], hintedZones: ['b', 'c', 'a'] };
    const plain = { ...all, addresses: ['10.0.0.2'] };
    const services = [service('a/web', { trafficDistribution: 'PreferSameZone' })];
    const [entry] = entriesOf(
      translateFresh({ services, slices: [slice('a/web', [], { endpoints: [hinted, plain] })] }).table,
      'endpoints',
    );
    assert.deepEqual(entry?.endpoints, [
      { address: '10.0.0.1', port: 8080, zone: 'b', otherZones: ['c', 'a'] },
      { address: '10.0.0.2', port: 8080, zone: 'a' },
    ]);
    const loads = updateEndpointStats(entry.endpoints, [], { now: 0, departed: () => undefined });
    const nearIn = (zone: string): readonly string[] =>
      buildPool(EMPTY_POOL, loads, { zone, maglev: undefined }).preferred.map(({ endpoint }) => endpoint.address);
    assert.deepEqual(nearIn('a'), ['10.0.0.1', '10.0.0.2']);
    assert.deepEqual(nearIn('b'), ['10.0.0.1']);
    assert.deepEqual(nearIn('c'), ['10.0.0.1']);
    assert.deepEqual(nearIn('d'), ['10.0.0.1', '10.0.0.2'], 'no endpoint is hinted for the zone, so all are preferred');
  });

  test('ignores DNS names in slices and reports them', () => {
    const slices = [slice('a/web', ['db.example.com', '10.0.0.1'], { addressType: 'FQDN' })];
    const translation = translateFresh({ services: [service('a/web')], slices });
    assert.deepEqual(endpointsOf(translation), ['10.0.0.1:8080']);
    assert.equal(reasonOf(translation, 'a/web'), 'EndpointForbidden');
    const { message } = entriesOf(translation.table, 'service')[0]?.accepted ?? assert.fail();
    assert.match(message, /ignored: db\.example\.com is not an IP address; use/);
  });

  test('uses all endpoints with publishNotReadyAddresses', () => {
    const sick = { addresses: ['10.0.0.3'], zone: null, ready: false, serving: false, terminating: false };
    const services = [service('a/web', { publishNotReadyAddresses: true })];
    const slices = [slice('a/web', [], { endpoints: [sick] })];
    assert.deepEqual(endpointsOf(translateFresh({ services, slices })), ['10.0.0.3:8080']);
  });

  test('splits a slice of 250 endpoints into entries of at most 100', () => {
    const addresses = Array.from({ length: 250 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
    const entries = entriesOf(
      translateFresh({ services: [service('a/web')], slices: [slice('a/web', addresses)] }).table,
      'endpoints',
    );
    assert.deepEqual(
      entries.map(({ endpoints }) => endpoints.length),
      [100, 100, 50],
    );
  });

  test('places a Service without endpoints, with a warning', () => {
    const translation = translateFresh({ services: [service('a/web')] });
    assert.deepEqual(portsOf(translation, 'a/web'), ['n1:80']);
    const problem = translation.problems.find(({ code }) => code === 'NoReadyEndpoints');
    assert.deepEqual([problem?.severity, problem?.heals], ['warning', true]);
  });
});

describe('the trust boundary', () => {
  const settings = { ...snapshotOf({}).settings, trust: { kind: 'pods', serviceCidrs: ['10.96.0.0/16'] } } as const;
  const forged = (address: string, pods = [pod('b/victim', '10.0.0.9')]): Translation =>
    translateFresh({ settings, pods, services: [service('a/web')], slices: [slice('a/web', [address])] });

  for (const [what, address] of [
    ['a pod of another namespace', '10.0.0.9'],
    ['a cluster IP', '10.96.0.1'],
    ['a node', '192.0.2.1'],
    ['loopback', '127.0.0.1'],
    ['link-local', '169.254.169.254'],
    ['IPv4-mapped loopback', '::ffff:127.0.0.1'],
  ] as const) {
    test(`ignores and reports an endpoint at the address of ${what}`, () => {
      const translation = forged(address);
      assert.deepEqual(endpointsOf(translation), []);
      assert.equal(reasonOf(translation, 'a/web'), 'EndpointForbidden');
    });
  }

  test('ignores special addresses, cluster IPs and nodes even if a policy allows every address', () => {
    const policies = [
      policy('all', { grants: { ...UNRESTRICTED_GRANTS, allowedEndpointCIDRs: ['0.0.0.0/0', '::/0'] } }),
    ];
    const slices = (addresses: readonly string[]): Snapshot['slices'] => [slice('a/web', addresses)];
    const never = ['127.0.0.1', '::1', '169.254.169.254', 'fe80::1', '::ffff:127.0.0.1', '10.96.0.1', '192.0.2.1'];
    const services = [service('a/web')];
    assert.deepEqual(endpointsOf(translateFresh({ settings, policies, services, slices: slices(never) })), []);
    const outside = translateFresh({ settings, policies, services, slices: slices(['198.51.100.7']) });
    assert.deepEqual(endpointsOf(outside), ['198.51.100.7:8080']);
  });

  test('ignores cluster IPs of ServiceCIDRs and of Services even if a policy allows them', () => {
    const policies = [
      policy('all', { grants: { ...UNRESTRICTED_GRANTS, allowedEndpointCIDRs: ['10.0.0.0/8', 'fd00::/8'] } }),
    ];
    const slices = [slice('a/web', ['10.97.0.1', '10.98.0.1', 'fd00:98:0::1', '10.99.0.1'])];
    const serviceCidrs = [{ name: 'more', cidrs: ['10.97.0.0/16'] }];
    const services = [
      service('a/web'),
      service('b/db', { type: 'ClusterIP', clusterIPs: ['10.98.0.1', 'fd00:98::1'] }),
    ];
    const translation = translateFresh({ settings, policies, services, slices, serviceCidrs });
    assert.deepEqual(endpointsOf(translation), ['10.99.0.1:8080']);
    const messages = translation.problems
      .filter(({ code }) => code === 'EndpointForbidden')
      .map(({ message }) => message);
    assert.match(messages.join(), /10\.97\.0\.1 is in the range of the cluster IPs of Services/);
    assert.match(messages.join(), /10\.98\.0\.1.* is the cluster IP of a Service/);
  });

  test('ignores pods of other namespaces even if a policy allows their address, as soon as the pod appears', () => {
    const policies = [policy('all', { grants: { ...UNRESTRICTED_GRANTS, allowedEndpointCIDRs: ['10.0.0.0/8'] } })];
    const parts = { settings, policies, services: [service('a/web')], slices: [slice('a/web', ['10.0.0.9'])] };
    const translator = new Translator(settings, NO_ALLOCATIONS);
    const endpointsNow = (pods: Snapshot['pods']): readonly string[] =>
      entriesOf(translator.translate(snapshotOf({ ...parts, pods })).table, 'endpoints').flatMap((entry) =>
        entry.endpoints.map(({ address }) => address),
      );
    const redis = pod('weir-system/redis-0', '10.0.0.9');
    assert.deepEqual(endpointsNow([]), ['10.0.0.9']);
    assert.deepEqual(endpointsNow([redis]), []);
    assert.deepEqual(endpointsNow([redis, pod('b/web', '10.0.0.9')]), []);
    assert.deepEqual(endpointsNow([]), ['10.0.0.9']);
    const refused = translateFresh({ ...parts, pods: [redis] });
    assert.match(
      refused.problems[0]?.message ?? '',
      /10\.0\.0\.9 belongs to a pod of another namespace; use addresses/,
    );
    assert.deepEqual(endpointsNow([redis, pod('a/web', '10.0.0.9')]), ['10.0.0.9']);
  });

  test('uses a released cluster IP, and the address of a pod that equals a cluster IP', () => {
    const policies = [policy('all', { grants: { ...UNRESTRICTED_GRANTS, allowedEndpointCIDRs: ['10.0.0.0/8'] } })];
    const taken = [service('a/web'), service('b/db', { type: 'ClusterIP', clusterIPs: ['10.98.0.1'] })];
    const parts = { settings, policies, slices: [slice('a/web', ['10.98.0.1'])] };
    const translator = new Translator(settings, NO_ALLOCATIONS);
    const endpointsNow = (more: Partial<Snapshot>): readonly string[] =>
      entriesOf(translator.translate(snapshotOf({ ...parts, ...more })).table, 'endpoints').flatMap((entry) =>
        entry.endpoints.map(({ address }) => address),
      );
    assert.deepEqual(endpointsNow({ services: taken }), []);
    assert.deepEqual(endpointsNow({ services: taken.slice(0, 1) }), ['10.98.0.1']);
    assert.deepEqual(endpointsNow({ services: taken }), []);
    assert.deepEqual(endpointsNow({ services: taken, pods: [pod('a/one', '10.98.0.1')] }), ['10.98.0.1']);
  });

  test('uses pods of the namespace, including pods on the host network', () => {
    const pods = [pod('a/one', '10.0.0.1'), pod('a/host', '192.0.2.1', true)];
    assert.deepEqual(endpointsOf(forged('10.0.0.1', pods)), ['10.0.0.1:8080']);
    assert.deepEqual(endpointsOf(forged('192.0.2.1', pods)), ['192.0.2.1:8080']);
  });

  test('ignores the reserved ports of pods on the host network', () => {
    const pods = [pod('a/host', '192.0.2.1', true)];
    const ports = [22, 2380, 6443, 8687, 8080, 9100, 10_250, 30_000, 32_768];
    const services = [service('a/web', { ports: ports.map((number, i) => port(40_000 + i, { name: `${number}` })) })];
    const slices = [
      slice('a/web', ['192.0.2.1'], {
        ports: ports.map((number) => ({ name: `${number}`, port: number, protocol: 'TCP' })),
      }),
    ];
    const reserving = { ...settings, reservedPorts: [{ from: 9_000, to: 9_200 }] };
    const translation = translateFresh({ settings: reserving, pods, services, slices });
    assert.deepEqual(endpointsOf(translation).sort(), ['192.0.2.1:32768', '192.0.2.1:8080']);
    assert.equal(reasonOf(translation, 'a/web'), 'EndpointForbidden');
    assert.match(messageOf(translation, 'a/web'), /192\.0\.2\.1:10250 is a port that is reserved on the nodes/);
    assert.match(
      messageOf(translation, 'a/web'),
      /; at the address of a node, use a port that is neither reserved nor/,
    );
    assert.doesNotMatch(messageOf(translation, 'a/web'), /use addresses of pods/);
  });

  test('ignores a pod that claims the address of a node without being on the host network', () => {
    assert.deepEqual(endpointsOf(forged('192.0.2.1', [pod('a/liar', '192.0.2.1')])), []);
  });
});
