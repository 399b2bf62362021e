import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '@weir/testkit';
import { jsonRequest, startTestConsole, type TestConsole } from '../fixtures/test-console.ts';

const SHOP = { type: 'Tenant', tenant: 'shop' } as const;
const WEB = { type: 'Service', namespace: 'shop', service: 'web' } as const;

test('suspends a tenant in the store, in the list and on its Services', async () => {
  await using console = await startTestConsole();
  const { status, json } = await suspend(console, { target: SHOP, message: 'You fill the link.' });
  assert.equal(status, 200);
  assert.deepEqual(json.target, SHOP);
  assert.equal(json.until, null);
  const { suspensions } = await console.store.suspensions.read();
  assert.deepEqual(
    suspensions.map(({ target, origin, message }) => ({ target, origin, message })),
    [{ target: { kind: 'tenant', tenant: 'shop' }, origin: { kind: 'store' }, message: 'You fill the link.' }],
  );
  const services = (await console.request('/api/v1/services')).json.items;
  assert.deepEqual(
    services.map((service: { state: string }) => service.state),
    ['Suspended', 'Suspended'],
  );
  assert.equal((await console.request('/api/v1/tenants')).json.items[0].suspension.message, 'You fill the link.');
});

test('changes message and end for a repeated target', async () => {
  await using console = await startTestConsole();
  await suspend(console, { target: WEB, message: 'first', until: inMinutes(5) });
  const until = inMinutes(10);
  await suspend(console, { target: WEB, message: 'second', until });
  const { items } = (await console.request('/api/v1/suspensions')).json;
  assert.equal(items.length, 1);
  assert.deepEqual([items[0].message, items[0].until], ['second', until]);
});

test('replaces a Suspension that ends later than the request only with replace=true', async () => {
  await using console = await startTestConsole();
  await suspend(console, { target: WEB, message: 'first', until: inMinutes(10) });
  const sooner = { target: WEB, message: 'second', until: inMinutes(5) };
  const { status, json } = await suspend(console, sooner);
  assert.equal(status, 409);
  assert.equal(json.error.code, 'AlreadySuspended');
  assert.match(
    json.error.message,
    /"service\.shop\.web" already exists and ends later than the request; .*weir suspend --replace/,
  );
  assert.deepEqual(await messages(console), ['first']);
  assert.equal((await suspend(console, sooner, '?replace=true')).status, 200);
  assert.deepEqual(await messages(console), ['second']);
});

test('refuses every value of replace except true', async () => {
  await using console = await startTestConsole();
  const { status, json } = await suspend(console, { target: WEB, message: 'x' }, '?replace=yes');
  assert.equal(status, 400);
  assert.match(json.error.message, /"replace" is "yes"; use true/);
});

test('deletes a Suspension once and answers 404 the second time', async () => {
  await using console = await startTestConsole();
  const { name } = (await suspend(console, { target: WEB, message: 'x' })).json;
  assert.equal((await console.request(`/api/v1/suspensions/${name}`, { method: 'DELETE' })).status, 200);
  assert.deepEqual((await console.store.suspensions.read()).suspensions, []);
  assert.equal((await console.request(`/api/v1/suspensions/${name}`, { method: 'DELETE' })).status, 404);
});

test('lists suspensions and releases in the audit trail, each once, and reads older ones with before', async () => {
  await using console = await startTestConsole();
  const { name } = (await suspend(console, { target: WEB, message: 'x' })).json;
  const [suspension] = (await console.store.suspensions.read()).suspensions;
  assert.ok(suspension);
  // The controller notices the deletion of the object before the console removes the entry.
  await console.store.suspensions.remove(suspension.uid, { suspension, why: 'deleted' });
  await console.store.suspensions.remove(suspension.uid, { suspension, why: 'resumed', by: 'bob' });
  const { items, next } = (await console.request('/api/v1/suspensions/audit')).json;
  assert.equal(next, null);
  assert.deepEqual(
    items.map((item: { action: string; why: string; releasedBy: string; suspension: { name: string } }) => [
      item.action,
      item.why,
      item.releasedBy,
      item.suspension.name,
    ]),
    [
      ['Released', 'resumed', 'bob', name],
      ['Suspended', null, null, name],
    ],
  );
  const older = await console.request(`/api/v1/suspensions/audit?before=${items[0].id}`);
  assert.equal(older.json.items.at(-1).action, 'Suspended');
  assert.equal((await console.request('/api/v1/suspensions/audit?before=x')).status, 400);
});

test('selects the items of a tenant, its namespaces and its Services from the audit trail', async () => {
  await using console = await startTestConsole();
  const targets = [WEB, { type: 'Tenant', tenant: 'shop' }, { type: 'Namespace', namespace: 'shop' }];
  for (const target of targets) await suspend(console, { target, message: 'x' });
  const countFor = async (tenant: string): Promise<number> =>
    (await console.request(`/api/v1/suspensions/audit?tenant=${tenant}`)).json.items.length;
  assert.deepEqual([await countFor('shop'), await countFor('rival')], [3, 0]);
  assert.equal((await console.request('/api/v1/suspensions/audit?tenant=no%20name')).status, 400);
});

test('refuses to delete a Suspension that holds on one node only, and names the node', async () => {
  await using console = await startTestConsole();
  const [heartbeat] = await console.store.heartbeats.list();
  assert.ok(heartbeat);
  const local = {
    uid: 'local.n1.tenant.shop',
    name: 'local.n1.tenant.shop',
    target: { kind: 'tenant', tenant: 'shop' },
    message: 'here',
    until: null,
    reason: 'SuspendedByOperator',
    origin: { kind: 'local', node: 'n1' },
    createdAt: 1,
    madeBy: 'alice',
  } as const;
  await console.store.heartbeats.record({ ...heartbeat, localSuspensions: [local] });
  await eventually(async () => {
    const [item] = (await console.request('/api/v1/suspensions')).json.items;
    assert.deepEqual([item?.name, item?.origin, item?.madeBy], [local.name, local.origin, 'alice']);
  });
  const { status, json } = await console.request(`/api/v1/suspensions/${local.name}`, { method: 'DELETE' });
  assert.deepEqual([status, json.error.code], [409, 'OriginIsLocal']);
  assert.match(json.error.message, /on node n1 .*run `weir resume shop --local` on this node/);
});

test('refuses to delete a Suspension from a file and names the file', async () => {
  await using console = await startTestConsole();
  await console.store.suspensions.put({
    uid: 'u',
    name: 'by-hand',
    target: { kind: 'tenant', tenant: 'shop' },
    message: '',
    until: null,
    reason: 'SuspendedByOperator',
    origin: { kind: 'file', path: 'manifests/stop.yaml' },
    createdAt: null,
  });
  const { status, json } = await console.request('/api/v1/suspensions/by-hand', { method: 'DELETE' });
  assert.equal(status, 409);
  assert.match(json.error.message, /manifests\/stop\.yaml/);
  assert.equal((await console.store.suspensions.read()).suspensions.length, 1);
});

test('refuses to delete a Kubernetes object without a kubeconfig', async () => {
  await using console = await startTestConsole();
  await console.store.suspensions.put({
    uid: 'u',
    name: 'stop-shop',
    target: { kind: 'tenant', tenant: 'shop' },
    message: '',
    until: null,
    reason: 'SuspendedByOperator',
    origin: { kind: 'kubernetes' },
    createdAt: null,
  });
  const { status, json } = await console.request('/api/v1/suspensions/stop-shop', { method: 'DELETE' });
  assert.equal(status, 409);
  assert.equal(json.error.code, 'OriginIsKubernetes');
  assert.match(
    json.error.message,
    /"stop-shop" .*without a kubeconfig.*kubectl delete suspension stop-shop.*KUBECONFIG/,
  );
  assert.equal((await console.store.suspensions.read()).suspensions.length, 1, 'the controller would put it back');
});

test('refuses a target that does not exist', async () => {
  await using console = await startTestConsole();
  const targets = [
    { type: 'Tenant', tenant: 'shpo' },
    { type: 'Namespace', namespace: 'shpo' },
    { type: 'Service', namespace: 'shop', service: 'wbe' },
  ];
  for (const target of targets) {
    const { status, json } = await suspend(console, { target, message: 'x' });
    assert.equal(status, 404);
    assert.equal(json.error.code, 'UnknownTarget');
  }
  assert.deepEqual((await console.store.suspensions.read()).suspensions, []);
});

test('answers 400 with the mistake, its path and the allowed values to an invalid body', async () => {
  await using console = await startTestConsole();
  const cases: readonly (readonly [body: unknown, message: RegExp])[] = [
    [{ message: 'x' }, /body "target" is missing; use an object with type/],
    [{ target: SHOP }, /body "message" is missing; use a text of 1 to 512 characters/],
    [{ target: SHOP, message: '  ' }, /body "message" is " {2}"; use a text/],
    [{ target: SHOP, message: 7 }, /body "message" is 7; use a text/],
    [{ target: SHOP, message: 'x', till: 'y' }, /body "till" is unknown; allowed: target, message, until/],
    [{ target: { type: 'Pod' }, message: 'x' }, /body "target\.type" is "Pod"; use one of Tenant, Namespace, Service/],
    [{ target: { type: 'Tenant' }, message: 'x' }, /body "target\.tenant" is missing/],
    [{ target: { ...WEB, tenant: 'shop' }, message: 'x' }, /body "target\.tenant" is not used with type Service/],
    [{ target: SHOP, message: 'x', until: 'soon' }, /body "until" is "soon"; use a time in the future as RFC 3339/],
    [{ target: SHOP, message: 'x', until: '2001-01-01T00:00:00Z' }, /which has passed/],
    [
      { target: SHOP, message: 'x', until: '2099-02-30T00:00:00Z' },
      /body "until" is "2099-02-30T00:00:00Z"; use a time/,
    ],
    [{ target: SHOP, message: 'x'.repeat(70_000) }, /^the body is larger than 64 KiB; send a smaller one$/],
    [[], /body is \[\]; use a JSON object/],
  ];
  for (const [body, message] of cases) {
    const { status, json } = await suspend(console, body);
    assert.equal(status, 400, JSON.stringify(body));
    assert.match(json.error.message, message);
  }
});

test('answers 400 to a path that is not percent-encoded', async () => {
  await using console = await startTestConsole();
  const response = await console.request('/api/v1/services/shop/%ff');
  assert.equal(response.status, 400);
  assert.deepEqual(response.json, {
    error: {
      code: 'InvalidRequest',
      message: 'path "/api/v1/services/shop/%ff" is not percent-encoded UTF-8; write % as %25',
    },
  });
});

test('answers 400 to a body that is not JSON', async () => {
  await using console = await startTestConsole();
  const response = await console.request('/api/v1/suspensions', { ...jsonRequest('POST', {}), body: '{"target":' });
  assert.equal(response.status, 400);
  assert.match(response.json.error.message, /not valid JSON/);
});

function suspend(console: TestConsole, body: unknown, query = ''): ReturnType<TestConsole['request']> {
  return console.request(`/api/v1/suspensions${query}`, jsonRequest('POST', body));
}

async function messages({ store }: TestConsole): Promise<readonly string[]> {
  return (await store.suspensions.read()).suspensions.map(({ message }) => message);
}

function inMinutes(minutes: number): string {
  return new Date(Date.now() + minutes * 60_000).toISOString();
}
