import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ServiceObject, UNRESTRICTED_GRANTS } from '@weir/model';
import { namespace, node, policy, port, service, team } from '../fixtures/snapshot.ts';
import { messageOf, portsOf, reasonOf, statusOf, translateAfter, translateFresh } from '../fixtures/translation.ts';

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

  test('refuses a Service over the limit with the limit, the Services that use it, and what to do', () => {
    const translation = translateFresh({ namespaces, policies: [shop], services: three });
    assert.equal(
      messageOf(translation, 'shop/beta'),
      '2 of 2 load balancers of tenant "shop" are in use (api, web); delete one or ask for a higher limit in TenantPolicy "shop"',
    );
    assert.equal(reasonOf(translation, 'shop/beta'), 'QuotaExceeded');
  });

  /** Services as one `kubectl apply` creates them: in the same second, with random UIDs. */
  const atOnce = [
    service('shop/a', { uid: 'u3', ports: [port(80)], createdAt: 1 }),
    service('shop/b', { uid: 'u2', ports: [port(81)], createdAt: 1 }),
    service('shop/c', { uid: 'u1', ports: [port(82)], createdAt: 1 }),
  ];

  test('accepts the first by name of Services that were created in one second', () => {
    const translation = translateFresh({ namespaces, policies: [shop], services: atOnce });
    const reasons = ['a', 'b', 'c'].map((name) => reasonOf(translation, `shop/${name}`));
    assert.deepEqual(reasons, ['Accepted', 'Accepted', 'QuotaExceeded']);
  });

  test('keeps an accepted Service when a Service with an earlier name is created in the same second, even without a node', () => {
    const given = { namespaces, policies: [shop] };
    for (const parts of [given, { ...given, nodes: [] }]) {
      const before = translateFresh({ ...parts, services: atOnce.slice(1) });
      const after = translateAfter(before, { ...parts, services: atOnce });
      const reasons = ['a', 'b', 'c'].map((name) => reasonOf(after, `shop/${name}`));
      assert.deepEqual(reasons, ['QuotaExceeded', 'Accepted', 'Accepted']);
    }
  });

  test('accepts the oldest waiting Service when another Service is deleted', () => {
    const waiting = [...three, service('shop/last', { ports: [port(90)], createdAt: 9 })];
    const before = translateFresh({ namespaces, policies: [shop], services: waiting });
    const after = translateAfter(before, { namespaces, policies: [shop], services: waiting.slice(1) });
    assert.equal(reasonOf(after, 'shop/beta'), 'Accepted');
    assert.equal(reasonOf(after, 'shop/last'), 'QuotaExceeded');
  });

  test('counts ports over all Services of a tenant', () => {
    const wide = service('shop/wide', { ports: [1001, 1002, 1003, 1004].map((number) => port(number)), createdAt: 0 });
    const more = service('shop/more', { ports: [port(1), port(2)], createdAt: 1 });
    const translation = translateFresh({ namespaces, policies: [shop], services: [wide, more] });
    assert.equal(reasonOf(translation, 'shop/wide'), 'Accepted');
    assert.match(
      messageOf(translation, 'shop/more'),
      /4 of 5 listener ports .*\(wide; a port counts once for each node\), and this Service needs 2/,
    );
  });

  test('keeps Services above a lowered limit and reports OverLimit', () => {
    const before = translateFresh({ namespaces, policies: [shop], services: three.slice(0, 2) });
    const lower = policy('shop', { ...shop.spec, limits: { services: 1 } });
    const after = translateAfter(before, { namespaces, policies: [lower], services: three.slice(0, 2) });
    assert.deepEqual(portsOf(after, 'shop/api'), ['n1:81']);
    const reasons = statusOf(after, 'shop/api').degraded.map(({ reason }) => reason);
    assert.ok(reasons.includes('OverLimit'), reasons.join());
  });

  test('keeps Services above a lowered limit when all nodes go and come back', () => {
    const given = { namespaces, services: three.slice(0, 2) };
    const lower = policy('shop', { ...shop.spec, limits: { services: 1, ports: 0 } });
    const above = translateAfter(translateFresh({ ...given, policies: [shop] }), { ...given, policies: [lower] });
    const without = translateAfter(above, { ...given, policies: [lower], nodes: [] });
    assert.equal(reasonOf(without, 'shop/api'), 'Accepted');
    const after = translateAfter(without, { ...given, policies: [lower] });
    for (const [name, at] of [
      ['web', 'n1:80'],
      ['api', 'n1:81'],
    ] as const) {
      assert.deepEqual(portsOf(after, `shop/${name}`), [at]);
    }
  });

  test('counts accepted ports while no node is available, so that nothing is added beyond the limit', () => {
    const [web, api] = [
      service('shop/web', { createdAt: 0 }),
      service('shop/api', { ports: [port(90)], createdAt: 1 }),
    ];
    const wider = { ...web, ports: [port(80), port(81, { name: 'more' })] };
    const widened = (others: readonly ServiceObject[], ports: number): string => {
      const given = { namespaces, policies: [policy('shop', { ...shop.spec, limits: { ports } })], nodes: [] };
      const before = translateFresh({ ...given, services: [web, ...others] });
      return reasonOf(translateAfter(before, { ...given, services: [wider, ...others] }), 'shop/web');
    };
    assert.equal(widened([], 1), 'QuotaExceeded');
    assert.equal(widened([], 2), 'Accepted');
    assert.equal(widened([api], 2), 'QuotaExceeded', 'even if the other Service has a lower priority');
    assert.equal(widened([api], 3), 'Accepted');
  });

  test('checks a Service that lost its ports and gets others in the same change against the limit like a new Service', () => {
    const policies = [
      policy('shop', { ...shop.spec, limits: { services: 1 } }),
      policy('other', {
        namespaceSelector: team('other'),
        grants: { ...UNRESTRICTED_GRANTS, pools: ['default', 'edge'] },
      }),
    ];
    const edge = node('n2', '192.0.2.2', { labels: { role: 'loadbalancer', 'weir.dev/pool': 'edge' } });
    const given = {
      namespaces: [...namespaces, namespace('other', { team: 'other' })],
      policies,
      nodes: [node('n1', '192.0.2.1'), edge],
    };
    const web = service('shop/web', { createdAt: 0 });
    const api = service('shop/api', { createdAt: 2, ports: [port(81)] });
    const mover = service('other/mover', { createdAt: 1, ports: [port(90)] });
    const before = translateFresh({ ...given, services: [web, api, mover] });
    assert.equal(reasonOf(before, 'shop/api'), 'QuotaExceeded');
    const onto = { ...web, ports: [port(90)] };
    const away = { ...mover, annotations: { 'weir.dev/pool': 'edge' } };
    const after = translateAfter(before, { ...given, services: [onto, api, away] });
    assert.deepEqual(portsOf(after, 'other/mover'), ['n2:90']);
    // In the first round, web was refused because mover still owned port 90. So web released its part of the limit, and the waiting api
    // got this part.
    assert.deepEqual(portsOf(after, 'shop/api'), ['n1:81']);
    assert.equal(reasonOf(after, 'shop/web'), 'QuotaExceeded');
  });

  test('refuses every Service with a limit of 0', () => {
    const none = policy('shop', { ...shop.spec, limits: { services: 0 } });
    const translation = translateFresh({ namespaces, policies: [none], services: three });
    assert.match(messageOf(translation, 'shop/web'), /may have no load balancers/);
  });

  test('does not count a Service that cannot be placed', () => {
    const other = service('other/web', { createdAt: -1 });
    const translation = translateFresh({ namespaces, policies: [shop], services: [other, ...three] });
    assert.deepEqual(portsOf(translation, 'shop/web'), []);
    assert.equal(reasonOf(translation, 'shop/beta'), 'Accepted');
  });
});

describe('tenants', () => {
  test('names a tenant after its namespace unless a policy derives another name', () => {
    const labelled = policy('teams', {
      namespaceSelector: { matchLabels: {}, matchExpressions: [{ key: 'team', operator: 'Exists', values: [] }] },
      tenantFrom: { kind: 'label', label: 'team' },
    });
    const translation = translateFresh({
      namespaces: [namespace('a', { team: 'red' }), namespace('b')],
      policies: [labelled],
      services: [service('a/web'), service('b/web', { ports: [port(81)] })],
    });
    assert.deepEqual(
      translation.statuses.map(({ tenant }) => tenant),
      ['red', 'b'],
    );
  });

  test('gives a tenant name that two policies derive to the policy of higher priority, and reports the other', () => {
    const named = (name: string, priority: number): ReturnType<typeof policy> =>
      policy(name, { priority, namespaceSelector: team(name), tenantFrom: { kind: 'name', name: 'gold' } });
    const translation = translateFresh({
      namespaces: [namespace('a', { team: 'one' }), namespace('b', { team: 'two' })],
      policies: [named('one', 1), named('two', 2)],
      services: [service('a/web'), service('b/web', { ports: [port(81)] })],
    });
    assert.equal(reasonOf(translation, 'a/web'), 'TenantConflict');
    assert.equal(statusOf(translation, 'b/web').tenant, 'gold');
  });

  test('does not count a Service whose tenant is disputed for the policy that owns the tenant name', () => {
    const named = (name: string, priority: number): ReturnType<typeof policy> =>
      policy(name, {
        priority,
        namespaceSelector: team(name),
        tenantFrom: { kind: 'name', name: 'gold' },
        limits: { services: 1 },
      });
    const world = {
      namespaces: [namespace('a', { team: 'one' }), namespace('b', { team: 'two' })],
      policies: [named('one', 1)],
      services: [service('a/web')],
    };
    const before = translateFresh(world);
    assert.equal(statusOf(before, 'a/web').tenant, 'gold');
    const policies = [named('one', 1), named('two', 2)];
    const after = translateAfter(before, {
      ...world,
      policies,
      services: [service('a/web'), service('b/web', { ports: [port(81)] })],
    });
    assert.equal(reasonOf(after, 'a/web'), 'TenantConflict');
    assert.notDeepEqual(statusOf(after, 'a/web').nodes, []);
    assert.equal(reasonOf(after, 'b/web'), 'Accepted');
  });
});
