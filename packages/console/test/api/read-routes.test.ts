import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '@weir/runtime';
import { eventually } from '@weir/testkit';
import { seededStore } from '../fixtures/seeded-store.ts';
import { startTestConsole } from '../fixtures/test-console.ts';

test('lists Services with the fields that scripts use', async () => {
  await using console = await startTestConsole();
  const { status, json } = await console.request('/api/v1/services');
  assert.equal(status, 200);
  const [extra, web] = json.items;
  assert.deepEqual(
    [extra.namespace, extra.name, extra.state, extra.reason],
    ['shop', 'extra', 'Refused', 'QuotaExceeded'],
  );
  assert.match(extra.message, /1 of 1 load balancers/);
  assert.deepEqual(
    [web.state, web.tenant, web.addresses, web.endpoints],
    ['Programmed', 'shop', ['192.0.2.1'], { ready: 2, total: 3 }],
  );
  const { port, protocol, node, bound, listening } = web.ports[0];
  assert.deepEqual(
    { port, protocol, node, bound, listening },
    { port: 80, protocol: 'TCP', node: 'a', bound: true, listening: true },
  );
});

test('reports a proxy on a node without the label as a problem', async () => {
  const seeded = await seededStore(new ManualClock(Date.now()));
  const [known] = await seeded.store.heartbeats.list();
  assert.ok(known);
  await seeded.store.heartbeats.record({ ...known, node: 'typo', listeners: [] });
  await using console = await startTestConsole({ seeded });
  const { items } = (await console.request('/api/v1/proxies')).json;
  const stray = items.find((each: { node: string }) => each.node === 'typo');
  assert.equal(stray.state, 'Stray');
  const problems = (await console.request('/api/v1/problems')).json.items;
  assert.deepEqual(
    problems.filter((each: { code: string }) => each.code === 'StrayProxy'),
    [{ code: 'StrayProxy', subject: 'Node typo', severity: 'warning', heals: true, message: stray.message }],
  );
});

test('filters Services by tenant and namespace', async () => {
  await using console = await startTestConsole();
  assert.equal((await console.request('/api/v1/services?tenant=shop&namespace=shop')).json.items.length, 2);
  assert.equal((await console.request('/api/v1/services?tenant=nobody')).json.items.length, 0);
});

test('explains a Service with endpoints, settings, limits, problems and usage', async () => {
  await using console = await startTestConsole();
  await console.flushUsage({ receivedBytes: 10, sentBytes: 20, connections: 1, requests: 0 });
  const { json } = await console.request('/api/v1/services/shop/web');
  assert.equal(json.endpointList[0].ready.length, 2);
  assert.equal(json.endpointList[0].unready, 1);
  assert.deepEqual(
    json.unhealthyEndpoints.map((each: { node: string; why: string }) => [each.node, each.why]),
    [['a', 'status 500']],
  );
  assert.equal(json.settings.algorithm, 'least-connections');
  assert.deepEqual(json.limits, { services: 1, trafficPerMonth: 10_000 });
  assert.equal(json.used.trafficThisMonth, 30);
  assert.deepEqual(json.month, { receivedBytes: 10, sentBytes: 20, connections: 1, requests: 0 });
  const refused = await console.request('/api/v1/services/shop/extra');
  assert.deepEqual(
    refused.json.problems.map((problem: { code: string }) => problem.code),
    ['QuotaExceeded'],
  );
});

test('lists tenants with limits, Services and traffic', async () => {
  await using console = await startTestConsole();
  await console.flushUsage({ receivedBytes: 1_000, sentBytes: 2_000 });
  const { json } = await console.request('/api/v1/tenants');
  const [shop] = json.items;
  assert.equal(shop.name, 'shop');
  assert.deepEqual(shop.services, { Programmed: 1, Pending: 0, Refused: 1, Suspended: 0 });
  assert.equal(shop.used.trafficThisMonth, 3_000);
  assert.equal(shop.suspension, null);
});

test('reports usage by tenant and Service, exact to the byte', async () => {
  await using console = await startTestConsole();
  await console.flushUsage({ receivedBytes: 9_007_199_254_740_991, sentBytes: 1, connections: 2, requests: 3 });
  const { json } = await console.request('/api/v1/usage');
  const { tenant, receivedBytes, sentBytes, connections, requests, services, month } = json.items[0];
  assert.deepEqual(
    { tenant, receivedBytes, sentBytes, connections, requests },
    { tenant: 'shop', receivedBytes: 9_007_199_254_740_991, sentBytes: 1, connections: 2, requests: 3 },
  );
  assert.match(month, /^\d{4}-\d\d$/);
  assert.deepEqual(
    [services[0].namespace, services[0].name, services[0].receivedBytes],
    ['shop', 'web', 9_007_199_254_740_991],
  );
});

test('reports requests by code class, and omits them if there are none', async () => {
  await using console = await startTestConsole();
  const requestsByCodeClass = { '2xx': 2, '3xx': 0, '4xx': 0, '5xx': 1, none: 0 };
  await console.flushUsage({ receivedBytes: 1, requests: 3, requestsByCodeClass });
  const [shop] = (await console.request('/api/v1/usage')).json.items;
  assert.deepEqual(shop.requestsByCodeClass, requestsByCodeClass);
  assert.deepEqual(shop.services[0].requestsByCodeClass, requestsByCodeClass);
  const [empty] = (await console.request('/api/v1/usage?month=2001-01')).json.items;
  assert.equal(empty.requests, 0);
  assert.ok(!('requestsByCodeClass' in empty));
  const { json } = await console.request('/api/v1/services/shop/web');
  assert.deepEqual(json.month.requestsByCodeClass, requestsByCodeClass);
});

test('reports refusals by reason of the month and of today', async () => {
  await using console = await startTestConsole();
  const none = (await console.request('/api/v1/services/shop/web')).json;
  assert.deepEqual([none.month.refused, none.refusedToday], [undefined, {}]);
  const refused = { 'rate-limit': 3, 'no-endpoints': 1 };
  await console.flushUsage({ refused });
  const { json } = await console.request('/api/v1/services/shop/web');
  assert.deepEqual([json.month.refused, json.refusedToday], [refused, refused]);
  const [shop] = (await console.request('/api/v1/usage')).json.items;
  assert.deepEqual([shop.refused, shop.services[0].refused], [refused, refused]);
});

test('reports zero usage for a month without traffic', async () => {
  await using console = await startTestConsole();
  const { json } = await console.request('/api/v1/usage?month=2001-01&tenant=shop');
  assert.equal(json.items[0].sentBytes, 0);
  assert.deepEqual(json.items[0].services, []);
});

test('ends the series of a tenant with the current minute, hour or day', async () => {
  await using console = await startTestConsole();
  await console.flushUsage({ sentBytes: 500 });
  for (const step of ['minute', 'hour', 'day']) {
    const { json } = await console.request(`/api/v1/tenants/shop/series?of=${step}`);
    assert.equal(
      json.items.reduce((sum: number, item: { sentBytes: number }) => sum + item.sentBytes, 0),
      500,
      step,
    );
  }
});

test('returns problems, proxies, table and fleet', async () => {
  await using console = await startTestConsole();
  assert.equal((await console.request('/api/v1/problems')).json.items[0].subject, 'Service shop/extra');
  assert.equal((await console.request('/api/v1/proxies')).json.items[0].state, 'Serving');
  const table = (await console.request('/api/v1/table')).json;
  assert.deepEqual(Object.keys(table), [
    'position',
    'nodes',
    'tenants',
    'services',
    'certificates',
    'listeners',
    'endpoints',
  ]);
  assert.equal((await console.request('/api/v1/fleet')).json.name, 'test');
});

test('answers 400 with the mistake and the allowed values to an invalid query', async () => {
  await using console = await startTestConsole();
  const cases: readonly (readonly [path: string, message: RegExp])[] = [
    ['/api/v1/services?foo=1', /query parameter "foo" is unknown; allowed: namespace, tenant/],
    ['/api/v1/proxies?foo=1', /query parameter "foo" is unknown; none is allowed here/],
    ['/api/v1/usage?month=2026-13', /"month" is "2026-13"; use a month as YYYY-MM/],
    ['/api/v1/tenants/shop/series?of=week', /"of" is "week"; use one of minute, hour, day/],
    ['/api/v1/services/Shop/web', /"namespace" is "Shop"; use the name of a namespace/],
    ['/api/v1/usage?tenant=a&tenant=b', /"tenant" is \["a","b"\]; use the name of a tenant/],
  ];
  for (const [path, message] of cases) {
    const { status, json } = await console.request(path);
    assert.equal(status, 400, path);
    assert.equal(json.error.code, 'InvalidRequest');
    assert.match(json.error.message, message);
  }
});

test('answers 404 with a message for objects and routes that do not exist', async () => {
  await using console = await startTestConsole();
  for (const path of [
    '/api/v1/services/shop/nope',
    '/api/v1/usage?tenant=nobody',
    '/api/v1/tenants/nobody/series',
    '/api/v2',
  ]) {
    const { status, json } = await console.request(path);
    assert.equal(status, 404, path);
    assert.equal(json.error.code, 'NotFound');
    assert.ok(json.error.message.length > 20);
  }
});

test('shows the last table and answers 503 for usage while the store is unreachable', async () => {
  const seeded = await seededStore(new ManualClock(Date.now()));
  await using console = await startTestConsole({ seeded });
  await console.request('/api/v1/services');
  seeded.store.faults.goAway();
  assert.equal((await console.request('/api/v1/services')).status, 200);
  const usage = await console.request('/api/v1/usage');
  assert.equal(usage.status, 503);
  assert.equal(usage.json.error.code, 'StoreAway');
});

test('lists all routes in the OpenAPI document', async () => {
  await using console = await startTestConsole();
  const { json } = await console.request('/openapi.json');
  for (const path of ['services', 'tenants', 'usage', 'problems', 'proxies', 'table', 'suspensions', 'live']) {
    assert.ok(json.paths[`/api/v1/${path}`], path);
  }
  assert.ok(json.paths['/api/v1/suspensions/{name}'].delete);
});

test('serves health and metrics', async () => {
  await using console = await startTestConsole();
  assert.equal((await console.request('/healthz')).status, 200);
  assert.equal((await console.request('/readyz')).status, 200);
  const { text } = await console.request('/metrics');
  assert.match(text, /weir_tenant_limit\{tenant="shop",resource="services"\} 1/);
  assert.match(text, /weir_table_revision 1/);
});

test('serves the page with a Content-Security-Policy that allows only its own scripts', async () => {
  await using console = await startTestConsole();
  const page = await console.request('/');
  assert.match(page.text, /<title>Weir console<\/title>/);
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'; script-src 'self'/);
  const paths = [...page.text.matchAll(/(?:src|href)="([^"#]+)"/g)].map((match) => match[1] ?? '');
  for (const path of new Set(paths)) assert.equal((await console.request(`/${path}`)).status, 200, path);
});

test('shows OverLimit in the lists of Services and problems once a tenant has used up its traffic', async () => {
  const seeded = await seededStore(new ManualClock(Date.now()));
  await seeded.flushUsage({ receivedBytes: 4_000, sentBytes: 6_000 });
  await using console = await startTestConsole({ seeded });
  await eventually(async () => {
    const { items } = (await console.request('/api/v1/services')).json;
    const conditions = items.flatMap((each: { name: string; conditions: { type: string; reason: string }[] }) =>
      each.conditions.filter(({ type }) => type === 'Degraded').map(({ reason }) => [each.name, reason]),
    );
    assert.deepEqual(conditions, [['web', 'OverLimit']]);
  });
  const problems = (await console.request('/api/v1/problems')).json.items.filter(
    ({ code }: { code: string }) => code === 'OverLimit',
  );
  assert.equal(problems.length, 1);
  assert.equal(problems[0].subject, 'Service shop/web');
  assert.match(problems[0].message, /^tenant "shop" has used up its trafficPerMonth of 10000 bytes/);
});

test('shows OverLimit in Services, their explanations and problems if a limit refuses clients', async () => {
  const clock = new ManualClock(Date.now() - 10 * 60_000);
  const seeded = await seededStore(clock);
  await clock.advance(8 * 60_000);
  await seeded.flushUsage({ connections: 880, refused: { 'rate-limit': 120 } });
  await seeded.sendHeartbeat();
  await using console = await startTestConsole({ seeded });
  type Condition = { type: string; reason: string; message: string };
  const message =
    /^limits refuse clients \(rate-limit\): in the minute \S+, 120 connections were refused and 880 accepted; /;
  await eventually(async () => {
    const { conditions } = (await console.request('/api/v1/services/shop/web')).json;
    const degraded = conditions.find(({ type }: Condition) => type === 'Degraded');
    assert.equal(degraded?.reason, 'OverLimit');
    assert.match(degraded.message, message);
  });
  const { items } = (await console.request('/api/v1/services?namespace=shop')).json;
  assert.deepEqual(
    items.flatMap((each: { name: string; conditions: Condition[] }) =>
      each.conditions.filter(({ reason }) => reason === 'OverLimit').map(() => each.name),
    ),
    ['web'],
  );
  const problems = (await console.request('/api/v1/problems')).json.items;
  const problem = problems.find(({ code }: { code: string }) => code === 'OverLimit');
  assert.deepEqual([problem.subject, problem.severity], ['Service shop/web', 'warning']);
  assert.match(problem.message, message);
});

test('reports endpoints that fail for a proxy as a problem', async () => {
  await using console = await startTestConsole();
  const { items } = (await console.request('/api/v1/problems')).json;
  const [unhealthy] = items.filter(({ code }: { code: string }) => code === 'UnhealthyEndpoints');
  assert.equal(unhealthy.subject, 'Service shop/web');
  assert.match(unhealthy.message, /^endpoints do not work for a proxy: \S+:\d+ \(a: status 500\); check these pods/);
});
