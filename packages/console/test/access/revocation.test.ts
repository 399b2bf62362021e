// What happens to those who are signed in when their rights, or the API server, go away.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { ManualClock } from '@weir/runtime';
import { eventually } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { openLiveStream } from '../fixtures/live-stream.ts';
import { type RbacCluster, startRbacCluster } from '../fixtures/rbac-cluster.ts';
import { startTestConsole, type TestConsole } from '../fixtures/test-console.ts';
import { RIVAL_DATA, type TwoTenantStore, twoTenantStore } from '../fixtures/two-tenants.ts';

describe('rights that end', requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'), () => {
  let cluster: RbacCluster;
  let clock: ManualClock;
  let seeded: TwoTenantStore;
  let console: TestConsole;
  let token: string;
  let other: string;

  before(async () => {
    cluster = await startRbacCluster();
    token = await cluster.token('shop-dev');
    other = await cluster.token('operator');
  });
  after(() => cluster?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    clock = new ManualClock(Date.now());
    seeded = await twoTenantStore(clock);
    console = await startTestConsole({ seeded, clock, auth: { kind: 'kubernetes', kubeconfig: cluster.kubeconfig } });
  });
  afterEach(async () => {
    cluster.proxy.intercept(async () => 'through');
    await console[Symbol.asyncDispose]();
  });

  const ask = (path: string, of = token): ReturnType<TestConsole['request']> =>
    console.request(path, { headers: { authorization: `Bearer ${of}` } });
  const grant = (): Promise<string> => cluster.plane.kubectl('apply', '-f', '-', { stdin: cluster.roles });
  const revoke = async (): Promise<AsyncDisposable> => {
    await cluster.plane.kubectl('delete', 'rolebinding', 'shop-dev', '-n', 'shop');
    const who = '--as=system:serviceaccount:people:shop-dev';
    // The authorizer follows its own watch. "no" comes with exit code 1.
    const can = ['auth', 'can-i', 'get', 'tenantusages/test', '-n', 'shop', who];
    await eventually(() => assert.rejects(cluster.plane.kubectl(...can)));
    return { [Symbol.asyncDispose]: async () => void (await grant()) };
  };
  const second = async (): Promise<void> => {
    await seeded.sendHeartbeat();
    await clock.advance(1_000);
  };

  test('a right that was taken away shows nothing more half a minute later', async () => {
    assert.equal((await ask('/api/v1/services/shop/web')).status, 200);
    await using _revoked = await revoke();
    await clock.advance(29_000);
    assert.equal((await ask('/api/v1/services/shop/web')).status, 200, 'kept');
    await clock.advance(1_001);
    assert.equal((await ask('/api/v1/services/shop/web')).status, 403);
    assert.equal((await ask('/api/v1/services')).status, 403);
  });

  test('a right that was granted shows what it is for within seconds where it is named', async () => {
    await using _revoked = await revoke();
    assert.equal((await ask('/api/v1/services/shop/web')).status, 403);
    await grant();
    await eventually(async () => {
      await clock.advance(10_000);
      assert.equal((await ask('/api/v1/services/shop/web')).status, 200);
    });
  });

  test('a token that was taken back is refused half a minute later', async () => {
    await cluster.plane.kubectl('create', 'serviceaccount', 'leaver', '-n', 'people');
    const leaving = await cluster.token('leaver');
    assert.equal((await ask('/api/v1/me', leaving)).status, 200);
    await cluster.plane.kubectl('delete', 'serviceaccount', 'leaver', '-n', 'people');
    assert.equal((await ask('/api/v1/me', leaving)).status, 200, 'kept');
    await clock.advance(30_000);
    await eventually(async () => {
      await clock.advance(30_000);
      assert.equal((await ask('/api/v1/me', leaving)).status, 401);
    });
  });

  test('a live stream shows its own tenant only, and ends when the right does', async () => {
    await using stream = await openLiveStream(console, token);
    await stream.nextEvent('history');
    for (let sent = 1; sent < 4; sent += 1) {
      await seeded.flushUsageOfBoth(sent * 1_000);
      await second();
    }
    const frame = await stream.nextEvent('rates');
    assert.deepEqual(
      frame.tenants.map(({ name }: { name: string }) => name),
      ['shop'],
    );
    assert.deepEqual(
      frame.services.map(({ name }: { name: string }) => name),
      ['extra', 'web'],
    );
    await using _revoked = await revoke();
    await eventually(async () => {
      await second();
      assert.ok(stream.hasEnded);
    });
    assert.doesNotMatch(stream.text, RIVAL_DATA);
    await using again = await openLiveStream(console, token);
    assert.equal(again.status, 403);
  });

  test('while the API server is away those who are signed in go on for a while, others are told why not', async () => {
    assert.equal((await ask('/api/v1/services')).status, 200);
    for (const answer of ['cut', { status: 503, body: '{"message":"etcd is away"}' }] as const) {
      cluster.proxy.intercept(async () => answer);
      assert.equal((await ask('/api/v1/services')).status, 200);
      const refused = await ask('/api/v1/services', other);
      assert.equal(refused.status, 503);
      assert.equal(refused.json.error.code, 'KubernetesAway');
      assert.match(
        refused.json.error.message,
        /the API server does not (say who you are|check the request \(HTTP 503: etcd is away\))/,
      );
    }
    await clock.advance(30_000);
    assert.equal((await ask('/api/v1/services')).status, 503);
    assert.equal((await console.request('/healthz')).status, 200);
    cluster.proxy.intercept(async () => 'through');
    assert.equal((await ask('/api/v1/services')).status, 200);
  });

  test('a console without its own rights says which one it lacks', async () => {
    const body = JSON.stringify({ message: 'cannot create resource' });
    cluster.proxy.intercept(async ({ path }) => (path.includes('tokenreviews') ? { status: 403, body } : 'through'));
    const refused = await ask('/api/v1/services');
    assert.equal(refused.status, 503);
    assert.match(refused.json.error.message, /grant the console create of tokenreviews\.authentication\.k8s\.io/);
  });

  test('an API server is asked once for what many ask at once, and not again while the answer holds', async () => {
    const before = cluster.proxy.requests.length;
    await Promise.all(Array.from({ length: 20 }, () => ask('/api/v1/services')));
    await ask('/api/v1/tenants');
    const paths = cluster.proxy.requests.slice(before).map(({ path }) => path.split('/').at(-1));
    // Everywhere; then shop, rival, rival-two.
    assert.deepEqual(paths.sort(), [...Array(4).fill('subjectaccessreviews'), 'tokenreviews']);
  });

  test('a flood of tokens that are nobody’s does not keep those out who are signed in', async () => {
    assert.equal((await ask('/api/v1/services')).status, 200);
    const { promise: end, resolve } = Promise.withResolvers<void>();
    cluster.proxy.intercept(async ({ body }) => {
      if (body.includes('stranger')) await end;
      return 'through';
    });
    const flood = Array.from({ length: 40 }, (_, index) => ask('/api/v1/services', `stranger${index}`));
    await clock.advance(30_000);
    assert.equal((await ask('/api/v1/services')).status, 200);
    resolve();
    const statuses = new Set((await Promise.all(flood)).map(({ status }) => status));
    assert.deepEqual([...statuses].sort(), [401, 503]);
  });
});
