// Tests requests of users who lose their rights, and requests while the API server is unreachable.
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { ManualClock } from '@weir/runtime';
import { eventually } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { openLiveStream } from '../fixtures/live-stream.ts';
import { type RbacCluster, startRbacCluster } from '../fixtures/rbac-cluster.ts';
import { startTestConsole, type TestConsole } from '../fixtures/test-console.ts';
import { RIVAL_DATA, type TwoTenantStore, twoTenantStore } from '../fixtures/two-tenants.ts';

describe(
  'a console with cached reviews',
  requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'),
  () => {
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
      cluster.proxy.intercept(async () => 'forward');
      await console[Symbol.asyncDispose]();
    });

    const request = (path: string, bearer = token): ReturnType<TestConsole['request']> =>
      console.request(path, { headers: { authorization: `Bearer ${bearer}` } });
    const grant = (): Promise<string> => cluster.plane.kubectl('apply', '-f', '-', { stdin: cluster.roles });
    const revoke = async (): Promise<AsyncDisposable> => {
      await cluster.plane.kubectl('delete', 'rolebinding', 'shop-dev', '-n', 'shop');
      const user = '--as=system:serviceaccount:people:shop-dev';
      // The authorizer applies RBAC changes with a delay. kubectl exits with code 1 if the answer is "no".
      const can = ['auth', 'can-i', 'get', 'tenantusages/test', '-n', 'shop', user];
      await eventually(() => assert.rejects(cluster.plane.kubectl(...can)));
      return { [Symbol.asyncDispose]: async () => void (await grant()) };
    };
    const passSecond = async (): Promise<void> => {
      await seeded.sendHeartbeat();
      await clock.advance(1_000);
    };

    test('refuses a revoked right after 30 seconds', async () => {
      assert.equal((await request('/api/v1/services/shop/web')).status, 200);
      await using _revoked = await revoke();
      await clock.advance(29_000);
      assert.equal((await request('/api/v1/services/shop/web')).status, 200, 'cached');
      await clock.advance(1_001);
      assert.equal((await request('/api/v1/services/shop/web')).status, 403);
      assert.equal((await request('/api/v1/services')).status, 403);
    });

    test('accepts a granted right within ten seconds if the request names the namespace', async () => {
      await using _revoked = await revoke();
      assert.equal((await request('/api/v1/services/shop/web')).status, 403);
      await grant();
      await eventually(async () => {
        await clock.advance(10_000);
        assert.equal((await request('/api/v1/services/shop/web')).status, 200);
      });
    });

    test('refuses a revoked token after 30 seconds', async () => {
      await cluster.plane.kubectl('create', 'serviceaccount', 'leaver', '-n', 'people');
      const leaving = await cluster.token('leaver');
      assert.equal((await request('/api/v1/me', leaving)).status, 200);
      await cluster.plane.kubectl('delete', 'serviceaccount', 'leaver', '-n', 'people');
      assert.equal((await request('/api/v1/me', leaving)).status, 200, 'cached');
      await clock.advance(30_000);
      await eventually(async () => {
        await clock.advance(30_000);
        assert.equal((await request('/api/v1/me', leaving)).status, 401);
      });
    });

    test('limits a live stream to the user’s tenant and ends the stream when the right is revoked', async () => {
      await using stream = await openLiveStream(console, token);
      await stream.nextEvent('history');
      for (let sent = 1; sent < 4; sent += 1) {
        await seeded.flushUsageOfBoth(sent * 1_000);
        await passSecond();
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
        await passSecond();
        assert.ok(stream.hasEnded);
      });
      assert.doesNotMatch(stream.text, RIVAL_DATA);
      await using again = await openLiveStream(console, token);
      assert.equal(again.status, 403);
    });

    test('keeps signed-in users for 30 seconds while the API server is unreachable, and answers 503 to other users', async () => {
      assert.equal((await request('/api/v1/services')).status, 200);
      for (const response of ['disconnect', { status: 503, body: '{"message":"etcd is away"}' }] as const) {
        cluster.proxy.intercept(async () => response);
        assert.equal((await request('/api/v1/services')).status, 200);
        const refused = await request('/api/v1/services', other);
        assert.equal(refused.status, 503);
        assert.equal(refused.json.error.code, 'KubernetesAway');
        assert.match(
          refused.json.error.message,
          /the API server (is unreachable, so the console cannot check your token|refused to check the request \(HTTP 503: etcd is away\))/,
        );
      }
      await clock.advance(30_000);
      assert.equal((await request('/api/v1/services')).status, 503);
      assert.equal((await console.request('/healthz')).status, 200);
      cluster.proxy.intercept(async () => 'forward');
      assert.equal((await request('/api/v1/services')).status, 200);
    });

    test('answers with the right that the console itself lacks', async () => {
      const body = JSON.stringify({ message: 'cannot create resource' });
      cluster.proxy.intercept(async ({ path }) => (path.includes('tokenreviews') ? { status: 403, body } : 'forward'));
      const refused = await request('/api/v1/services');
      assert.equal(refused.status, 503);
      assert.match(
        refused.json.error.message,
        /grant the console the right to create tokenreviews\.authentication\.k8s\.io/,
      );
    });

    test('shares reviews between concurrent requests and caches their results', async () => {
      const before = cluster.proxy.requests.length;
      await Promise.all(Array.from({ length: 20 }, () => request('/api/v1/services')));
      await request('/api/v1/tenants');
      const paths = cluster.proxy.requests.slice(before).map(({ path }) => path.split('/').at(-1));
      // Four access reviews: one for all namespaces, and one each for shop, rival and rival-two.
      assert.deepEqual(paths.sort(), [...Array(4).fill('subjectaccessreviews'), 'tokenreviews']);
    });

    test('serves signed-in users during a flood of invalid tokens', async () => {
      assert.equal((await request('/api/v1/services')).status, 200);
      const { promise: end, resolve } = Promise.withResolvers<void>();
      cluster.proxy.intercept(async ({ body }) => {
        if (body.includes('invalid')) await end;
        return 'forward';
      });
      const flood = Array.from({ length: 40 }, (_, index) => request('/api/v1/services', `invalid${index}`));
      await clock.advance(30_000);
      assert.equal((await request('/api/v1/services')).status, 200);
      resolve();
      const statuses = new Set((await Promise.all(flood)).map(({ status }) => status));
      assert.deepEqual([...statuses].sort(), [401, 503]);
    });
  },
);
