import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { entriesOf, heldFor, NOTHING_HELD, type Snapshot, type Translation, translate } from '@weir/model';
import { deepFreeze } from '@weir/testkit';
import { namespace, node, pod, policy, port, service, slice, snapshotOf, suspension, team } from './build/snapshot.ts';

const fresh = (parts: Partial<Snapshot>): Translation => translate(deepFreeze(snapshotOf(parts)), NOTHING_HELD);
const next = (before: Translation, parts: Partial<Snapshot>): Translation =>
  translate(deepFreeze(snapshotOf(parts)), heldFor(before.table));

function statusOf(translation: Translation, path: string): Translation['statuses'][number] {
  const found = translation.statuses.find(({ namespace, name }) => `${namespace}/${name}` === path);
  assert.ok(found, `no status of ${path}`);
  return found;
}

const reasonOf = (translation: Translation, path: string): string => statusOf(translation, path).accepted.reason;
const messageOf = (translation: Translation, path: string): string => statusOf(translation, path).accepted.message;
const portsOf = (translation: Translation, path: string): string[] => {
  const { uid } = statusOf(translation, path);
  return entriesOf(translation.table, 'listener')
    .filter((listener) => listener.service === uid)
    .map((listener) => `${listener.node}:${listener.port}`);
};
const endpointsOf = (translation: Translation): string[] =>
  entriesOf(translation.table, 'endpoints').flatMap(({ endpoints }) =>
    endpoints.map(({ address, port }) => `${address}:${port}`),
  );

describe('which Services are taken', () => {
  test('those of type LoadBalancer that name the class, and with classless also those that name none', () => {
    const services = [
      service('a/classed'),
      service('a/classless', { loadBalancerClass: null, ports: [port(81)] }),
      service('a/other', { loadBalancerClass: 'example.com/other', ports: [port(82)] }),
      service('a/internal', { type: 'ClusterIP', ports: [port(83)] }),
      service('a/ignored', { annotations: { 'weir.dev/ignore': 'true' }, ports: [port(84)] }),
      service('a/deleting', { deleting: true, ports: [port(85)] }),
    ];
    const names = (classless: boolean): string[] =>
      fresh({ services, settings: { ...snapshotOf({}).settings, classless } }).statuses.map(({ name }) => name);
    assert.deepEqual(names(false), ['classed']);
    assert.deepEqual(names(true), ['classed', 'classless']);
  });

  test('when none names the class, a problem names --classless', () => {
    const { problems } = fresh({ services: [service('a/web', { loadBalancerClass: null })] });
    assert.equal(problems[0]?.code, 'NoServices');
    assert.match(problems[0]?.message ?? '', /--classless/);
  });
});

describe('placement', () => {
  const nodes = [node('n1', '192.0.2.1'), node('n2', '192.0.2.2')];

  test('a Service gets its ports on every labelled node that is not excluded', () => {
    const translation = fresh({
      nodes: [
        ...nodes,
        node('n3', '192.0.2.3', { labels: {} }),
        node('n4', '192.0.2.4', {
          labels: { role: 'loadbalancer', 'node.kubernetes.io/exclude-from-external-load-balancers': '' },
        }),
      ],
      services: [service('a/web')],
    });
    assert.deepEqual(portsOf(translation, 'a/web'), ['n1:80', 'n2:80']);
  });

  test('a port that two Services want has one owner, the older one, and the other is told', () => {
    const translation = fresh({
      nodes,
      services: [service('a/late', { createdAt: 2 }), service('b/early', { createdAt: 1 })],
    });
    assert.deepEqual(portsOf(translation, 'b/early'), ['n1:80', 'n2:80']);
    assert.deepEqual(portsOf(translation, 'a/late'), []);
    assert.equal(reasonOf(translation, 'a/late'), 'PortConflict');
    assert.match(messageOf(translation, 'a/late'), /port 80\/TCP is taken by another tenant on the 2 nodes/);
    assert.doesNotMatch(messageOf(translation, 'a/late'), /early/);
  });

  test('the owner of a port is named to its own tenant', () => {
    const translation = fresh({ services: [service('a/one', { createdAt: 1 }), service('a/two', { createdAt: 2 })] });
    assert.match(messageOf(translation, 'a/two'), /Service a\/one on the only node/);
  });

  test('who holds a port keeps it against an older Service that comes later', () => {
    const before = fresh({ services: [service('a/holder', { createdAt: 5 })] });
    const after = next(before, {
      services: [service('a/holder', { createdAt: 5 }), service('b/older', { createdAt: 1 })],
    });
    assert.deepEqual(portsOf(after, 'a/holder'), ['n1:80']);
    assert.equal(reasonOf(after, 'b/older'), 'PortConflict');
  });

  test('when everything is lost, whose address was published goes before who is older', () => {
    const translation = fresh({
      services: [
        service('a/older', { createdAt: 1 }),
        service('b/published', { createdAt: 2, publishedIPs: ['192.0.2.1'] }),
      ],
    });
    assert.deepEqual(portsOf(translation, 'b/published'), ['n1:80']);
  });

  test('a port that is given up goes to the Service that waits', () => {
    const both = [service('a/one', { createdAt: 1 }), service('b/two', { createdAt: 2 })];
    const before = fresh({ services: both });
    const after = next(before, { services: [service('b/two', { createdAt: 2 })] });
    assert.deepEqual(portsOf(after, 'b/two'), ['n1:80']);
    assert.equal(reasonOf(after, 'b/two'), 'Accepted');
  });

  test('a Service that serves and gains a taken port keeps the others and says which is refused', () => {
    const owner = service('b/owner', { ports: [port(443)] });
    const before = fresh({ services: [service('a/web'), owner] });
    const after = next(before, { services: [service('a/web', { ports: [port(80), port(443)] }), owner] });
    assert.deepEqual(portsOf(after, 'a/web'), ['n1:80']);
    assert.equal(reasonOf(after, 'a/web'), 'PortConflict');
    assert.equal(statusOf(after, 'a/web').ports[1]?.error?.reason, 'PortConflict');
    assert.equal(statusOf(after, 'a/web').ports[0]?.error, null);
  });

  test('a new Service with one taken port is refused whole', () => {
    const translation = fresh({
      services: [
        service('b/owner', { ports: [port(443)], createdAt: 1 }),
        service('a/web', { ports: [port(80), port(443)] }),
      ],
    });
    assert.deepEqual(portsOf(translation, 'a/web'), []);
    assert.equal(reasonOf(translation, 'a/web'), 'PortConflict');
  });

  test('a reserved port is refused, and says so', () => {
    const translation = fresh({ services: [service('a/ssh', { ports: [port(22)] })] });
    assert.equal(reasonOf(translation, 'a/ssh'), 'PortReserved');
  });

  test('UDP beside TCP is refused alone while it is not served; UDP only is refused whole', () => {
    const dns = [port(53, { name: 'tcp' }), port(53, { name: 'udp', protocol: 'UDP' })];
    const translation = fresh({
      services: [service('a/dns', { ports: dns }), service('a/voice', { ports: [port(5060, { protocol: 'UDP' })] })],
    });
    assert.deepEqual(portsOf(translation, 'a/dns'), ['n1:53']);
    assert.equal(reasonOf(translation, 'a/dns'), 'UnsupportedProtocol');
    assert.equal(reasonOf(translation, 'a/voice'), 'UnsupportedProtocol');
    assert.deepEqual(portsOf(translation, 'a/voice'), []);
  });

  test('without nodes a Service is accepted, and the problem says how to label one', () => {
    const translation = fresh({ nodes: [], services: [service('a/web')] });
    assert.equal(reasonOf(translation, 'a/web'), 'Accepted');
    const problem = translation.problems.find(({ code }) => code === 'NoNodes');
    assert.match(problem?.message ?? '', /kubectl label node/);
  });

  test('only addresses of the families of the Service are bound', () => {
    const dual = node('n1', '192.0.2.1', { internalIPs: ['192.0.2.1', '2001:db8::1'] });
    const addresses = (ipFamilies: readonly string[]): string[] =>
      entriesOf(fresh({ nodes: [dual], services: [service('a/web', { ipFamilies })] }).table, 'listener').map(
        (listener) => listener.address,
      );
    assert.deepEqual(addresses(['IPv6']), ['2001:db8::1']);
    assert.deepEqual(addresses([]), ['192.0.2.1', '2001:db8::1']);
  });
});

describe('limits of a tenant', () => {
  const shop = policy('shop', {
    namespaceSelector: team('shop'),
    tenantFrom: { kind: 'name', name: 'shop' },
    limits: { services: 2, ports: 5 },
  });
  const namespaces = [namespace('shop', { team: 'shop' })];
  const three = ['web', 'api', 'beta'].map((name, i) =>
    service(`shop/${name}`, { ports: [port(80 + i)], createdAt: i }),
  );

  test('one Service too many is refused and told the limit, what uses it, and what to do', () => {
    const translation = fresh({ namespaces, policies: [shop], services: three });
    assert.equal(
      messageOf(translation, 'shop/beta'),
      '2 of 2 load balancers of tenant "shop" are in use (api, web); delete one or ask for a higher limit in TenantPolicy "shop"',
    );
    assert.equal(reasonOf(translation, 'shop/beta'), 'QuotaExceeded');
  });

  test('when one is deleted the oldest that waits gets its turn', () => {
    const waiting = [...three, service('shop/last', { ports: [port(90)], createdAt: 9 })];
    const before = fresh({ namespaces, policies: [shop], services: waiting });
    const after = next(before, { namespaces, policies: [shop], services: waiting.slice(1) });
    assert.equal(reasonOf(after, 'shop/beta'), 'Accepted');
    assert.equal(reasonOf(after, 'shop/last'), 'QuotaExceeded');
  });

  test('ports are counted over the Services of a tenant', () => {
    const wide = service('shop/wide', { ports: [1001, 1002, 1003, 1004].map((number) => port(number)), createdAt: 0 });
    const more = service('shop/more', { ports: [port(1), port(2)], createdAt: 1 });
    const translation = fresh({ namespaces, policies: [shop], services: [wide, more] });
    assert.equal(reasonOf(translation, 'shop/wide'), 'Accepted');
    assert.match(messageOf(translation, 'shop/more'), /4 of 5 listener ports .*\(wide\), this Service has 2/);
  });

  test('a lowered limit cuts nothing that serves; it is shown as over the limit', () => {
    const before = fresh({ namespaces, policies: [shop], services: three.slice(0, 2) });
    const lower = policy('shop', { ...shop.spec, limits: { services: 1 } });
    const after = next(before, { namespaces, policies: [lower], services: three.slice(0, 2) });
    assert.deepEqual(portsOf(after, 'shop/api'), ['n1:81']);
    assert.deepEqual(
      statusOf(after, 'shop/api').degraded.map(({ reason }) => reason),
      ['OverLimit'],
    );
  });

  test('0 means none', () => {
    const none = policy('shop', { ...shop.spec, limits: { services: 0 } });
    const translation = fresh({ namespaces, policies: [none], services: three });
    assert.match(messageOf(translation, 'shop/web'), /may have no load balancers/);
  });

  test('a Service that cannot be placed uses nothing of the limit', () => {
    const other = service('other/web', { createdAt: -1 });
    const translation = fresh({ namespaces, policies: [shop], services: [other, ...three] });
    assert.deepEqual(portsOf(translation, 'shop/web'), []);
    assert.equal(reasonOf(translation, 'shop/beta'), 'Accepted');
  });
});

describe('who is a tenant', () => {
  test('a namespace is a tenant of its own name unless a policy says otherwise', () => {
    const labelled = policy('teams', {
      namespaceSelector: { matchLabels: {}, matchExpressions: [{ key: 'team', operator: 'Exists', values: [] }] },
      tenantFrom: { kind: 'label', label: 'team' },
    });
    const translation = fresh({
      namespaces: [namespace('a', { team: 'red' }), namespace('b')],
      policies: [labelled],
      services: [service('a/web'), service('b/web', { ports: [port(81)] })],
    });
    assert.deepEqual(
      translation.statuses.map(({ tenant }) => tenant),
      ['red', 'b'],
    );
  });

  test('the policy of higher priority has a name that two yield; Services of the other are told', () => {
    const named = (name: string, priority: number): ReturnType<typeof policy> =>
      policy(name, { priority, namespaceSelector: team(name), tenantFrom: { kind: 'name', name: 'gold' } });
    const translation = fresh({
      namespaces: [namespace('a', { team: 'one' }), namespace('b', { team: 'two' })],
      policies: [named('one', 1), named('two', 2)],
      services: [service('a/web'), service('b/web', { ports: [port(81)] })],
    });
    assert.equal(reasonOf(translation, 'a/web'), 'TenantConflict');
    assert.equal(statusOf(translation, 'b/web').tenant, 'gold');
  });
});

describe('settings', () => {
  test('a wrong annotation is refused and names annotation, value and what is allowed', () => {
    const translation = fresh({ services: [service('a/web', { annotations: { 'weir.dev/algorithm': 'best' } })] });
    assert.equal(
      messageOf(translation, 'a/web'),
      'annotation weir.dev/algorithm: "best" is not allowed; use one of least-connections, round-robin',
    );
    assert.deepEqual(portsOf(translation, 'a/web'), []);
  });

  test('an annotation that is not honoured refuses the Service instead of being ignored', () => {
    const translation = fresh({ services: [service('a/web', { annotations: { 'weir.dev/client-ca-secret': 'ca' } })] });
    assert.equal(reasonOf(translation, 'a/web'), 'InvalidAnnotation');
    assert.equal(entriesOf(translation.table, 'service')[0]?.settings, null);
  });

  test('the last accepted settings go on serving while the present ones are wrong', () => {
    const before = fresh({ services: [service('a/web', { annotations: { 'weir.dev/idle-timeout': '7s' } })] });
    const after = next(before, { services: [service('a/web', { annotations: { 'weir.dev/idle-timeout': 'long' } })] });
    assert.equal(entriesOf(after.table, 'service')[0]?.settings?.idleTimeoutMs, 7000);
    assert.equal(reasonOf(after, 'a/web'), 'InvalidAnnotation');
    assert.deepEqual(portsOf(after, 'a/web'), ['n1:80']);
  });

  test('source ranges of the field win over the legacy annotation, blanks and host bits are taken', () => {
    const legacy = { 'service.beta.kubernetes.io/load-balancer-source-ranges': '192.0.2.0/24' };
    const ranges = (sourceRanges: string[]): readonly string[] | undefined =>
      entriesOf(fresh({ services: [service('a/web', { annotations: legacy, sourceRanges })] }).table, 'service')[0]
        ?.settings?.sourceRanges;
    assert.deepEqual(ranges([' 10.1.2.3/8 ', 'fd00::1/8']), ['10.0.0.0/8', 'fd00::/8']);
    assert.deepEqual(ranges([]), ['192.0.2.0/24']);
  });

  test('a source range that is none refuses the Service', () => {
    const translation = fresh({ services: [service('a/web', { sourceRanges: ['10.0.0.0'] })] });
    assert.match(messageOf(translation, 'a/web'), /"10\.0\.0\.0" is not a CIDR/);
  });
});

describe('endpoints', () => {
  test('slices are merged, and an address that stands in two is one endpoint of the matcher', () => {
    const slices = [slice('a/web', ['10.0.0.1', '10.0.0.2']), slice('a/web', ['10.0.0.3'], { name: 'web-2' })];
    assert.deepEqual(endpointsOf(fresh({ services: [service('a/web')], slices })), [
      '10.0.0.1:8080',
      '10.0.0.2:8080',
      '10.0.0.3:8080',
    ]);
  });

  test('a named port has the number that each slice gives it', () => {
    const services = [service('a/web', { ports: [port(80, { name: 'http' })] })];
    const slices = [8080, 9090].map((number, i) =>
      slice('a/web', [`10.0.0.${i}`], { name: `web-${i}`, ports: [{ name: 'http', port: number, protocol: 'TCP' }] }),
    );
    assert.deepEqual(endpointsOf(fresh({ services, slices })), ['10.0.0.0:8080', '10.0.0.1:9090']);
  });

  test('those that are not ready are left out; when none is ready those that serve while terminating are used', () => {
    const ready = { addresses: ['10.0.0.1'], ready: true, serving: true, terminating: false };
    const leaving = { addresses: ['10.0.0.2'], ready: false, serving: true, terminating: true };
    const sick = { addresses: ['10.0.0.3'], ready: false, serving: false, terminating: false };
    const used = (...endpoints: (typeof ready)[]): string[] =>
      endpointsOf(fresh({ services: [service('a/web')], slices: [slice('a/web', [], { endpoints })] }));
    assert.deepEqual(used(ready, leaving, sick), ['10.0.0.1:8080']);
    assert.deepEqual(used(leaving, sick), ['10.0.0.2:8080']);
    assert.deepEqual(used(sick), []);
  });

  test('publishNotReadyAddresses uses all', () => {
    const sick = { addresses: ['10.0.0.3'], ready: false, serving: false, terminating: false };
    const services = [service('a/web', { publishNotReadyAddresses: true })];
    const slices = [slice('a/web', [], { endpoints: [sick] })];
    assert.deepEqual(endpointsOf(fresh({ services, slices })), ['10.0.0.3:8080']);
  });

  test('a slice of 250 becomes entries of at most 100, and one more endpoint changes one of them', () => {
    const addresses = Array.from({ length: 250 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
    const entries = entriesOf(
      fresh({ services: [service('a/web')], slices: [slice('a/web', addresses)] }).table,
      'endpoints',
    );
    assert.deepEqual(
      entries.map(({ endpoints }) => endpoints.length),
      [100, 100, 50],
    );
  });

  test('no endpoint: the Service is placed all the same, with a warning', () => {
    const translation = fresh({ services: [service('a/web')] });
    assert.deepEqual(portsOf(translation, 'a/web'), ['n1:80']);
    const [problem] = translation.problems;
    assert.deepEqual([problem?.code, problem?.severity, problem?.heals], ['NoReadyEndpoints', 'warning', true]);
  });
});

describe('the trust boundary', () => {
  const settings = { ...snapshotOf({}).settings, trust: { kind: 'pods', serviceCidrs: ['10.96.0.0/16'] } } as const;
  const forged = (address: string, pods = [pod('b/victim', '10.0.0.9')]): Translation =>
    fresh({ settings, pods, services: [service('a/web')], slices: [slice('a/web', [address])] });

  for (const [what, address] of [
    ['a pod of another namespace', '10.0.0.9'],
    ['a cluster IP', '10.96.0.1'],
    ['a node', '192.0.2.1'],
    ['loopback', '127.0.0.1'],
    ['link-local', '169.254.169.254'],
    ['loopback in IPv6 clothes', '::ffff:127.0.0.1'],
  ] as const) {
    test(`an endpoint at ${what} is not used, and the Service says so`, () => {
      const translation = forged(address);
      assert.deepEqual(endpointsOf(translation), []);
      assert.equal(reasonOf(translation, 'a/web'), 'EndpointForbidden');
    });
  }

  test('pods of the namespace are used, also on the host network', () => {
    const pods = [pod('a/one', '10.0.0.1'), pod('a/host', '192.0.2.1', true)];
    assert.deepEqual(endpointsOf(forged('10.0.0.1', pods)), ['10.0.0.1:8080']);
    assert.deepEqual(endpointsOf(forged('192.0.2.1', pods)), ['192.0.2.1:8080']);
  });

  test('a pod that claims the address of a node without being on its network is not believed', () => {
    assert.deepEqual(endpointsOf(forged('192.0.2.1', [pod('a/liar', '192.0.2.1')])), []);
  });
});

test('a Suspension of something that does not exist is a warning that can heal', () => {
  const { problems } = fresh({
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
