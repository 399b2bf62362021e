// A controller with a real API server behind a proxy that injects faults.
import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { entriesOf, type TablePosition } from '@weir/model';
import type { Metrics } from '@weir/runtime';
import { createMetrics } from '@weir/runtime/metrics';
import {
  type ApiServerProxy,
  eventually as eventuallyWithin,
  type ProxiedRequest,
  type ProxiedResponse,
} from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import {
  addNode,
  type Cluster,
  namespace,
  type RunningController,
  sendHeartbeat,
  service,
  startCluster,
  startProxiedApi,
  startRunningController,
} from '../fixtures/cluster.ts';
import { serviceNow } from '../fixtures/service-status.ts';

const KINDS_WATCHED = 8;
const SERVICES = '/api/v1/services';
const EXPIRED = { type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' } };

const eventually = <T>(assertion: () => T | Promise<T>): Promise<T> =>
  eventuallyWithin(assertion, { timeoutMs: 40_000 });

describe(
  'a controller behind a faulty API server',
  requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'),
  () => {
    let cluster: Cluster;
    before(async () => {
      cluster = await startCluster();
      await addNode(cluster, 'a', '10.1.0.1');
    });
    after(() => cluster?.[Symbol.asyncDispose]());

    test('writes no table, status or Event after an outage that cost its leadership', async (context) => {
      const { proxy, running, web, metric } = await startServing(context, cluster, 'away');
      proxy.intercept(async () => 'disconnect');
      proxy.closeConnections();
      await eventually(async () => {
        await sendHeartbeat(running.store, 'a');
        assert.equal(running.controller.isLeader, false);
      });
      assert.equal(await metric('weir_controller_leader'), 0);
      assert.deepEqual(await running.store.table.meta(), web.meta, 'the table stays');
      assert.ok((await metric('weir_controller_watch_restarts_total{reason="error"}')) >= KINDS_WATCHED);
      const from = proxy.requests.length;
      proxy.intercept(async () => 'forward');
      await eventually(async () => {
        await sendHeartbeat(running.store, 'a');
        assert.ok(running.controller.translation());
      });
      await waitUntilSettled(running, proxy);
      assert.deepEqual(writesOf(proxy.requests.slice(from)), []);
      assert.deepEqual(withoutLeader(await running.store.table.meta()), withoutLeader(web.meta));
      assert.equal(await versionOf(cluster, 'away'), web.version);
      assert.equal(await metric('weir_controller_publishes_total{result="published"}'), web.publishes);
      assert.equal(await metric('weir_controller_leader_changes_total'), 3);
    });

    test('lists again after 410 on watches, and publishes only what changed', async (context) => {
      const { proxy, running, web, metric } = await startServing(context, cluster, 'gone');
      // The count is not 0, because the new leader has listed every kind again.
      const before = await metric('weir_controller_relists_total');
      proxy.endWatches(EXPIRED);
      await eventually(async () => assert.equal(await metric('weir_controller_relists_total'), before + KINDS_WATCHED));
      await running.controller.idle();
      assert.equal(await metric('weir_controller_watch_restarts_total{reason="gone"}'), KINDS_WATCHED);
      assert.deepEqual(await running.store.table.meta(), web.meta);
      assert.equal(await versionOf(cluster, 'gone'), web.version);

      const gap = Promise.withResolvers<void>();
      proxy.intercept(async () => {
        await gap.promise;
        return 'forward';
      });
      proxy.endWatches(EXPIRED);
      await cluster.kubectl('delete', 'service', '-n', 'gone', 'web');
      await cluster.apply(service('api', 'gone', 401));
      gap.resolve();
      await eventually(async () => assert.deepEqual(await served(running, 'gone'), ['api']));
      assert.equal((await running.store.table.meta())?.epoch, web.meta?.epoch);
    });

    test('writes the status of the changed Service after 409', async (context) => {
      const { proxy, running, metric } = await startServing(context, cluster, 'conflict');
      const change = Promise.withResolvers<void>();
      let statuses = 0;
      proxy.intercept(async ({ method, path }) => {
        if (method !== 'PATCH' || !path.endsWith('/conflict/services/late/status')) return 'forward';
        statuses += 1;
        await change.promise;
        return 'forward';
      });
      await cluster.apply(service('late', 'conflict', 411));
      await eventually(() => assert.equal(statuses, 1));
      await cluster.kubectl('annotate', 'service', '-n', 'conflict', 'late', 'weir.dev/nodes=0');
      change.resolve();
      await eventually(async () => {
        await sendHeartbeat(running.store, 'a');
        assert.deepEqual(await reasonsOf(cluster, 'conflict', 'late'), {
          Accepted: 'InvalidAnnotation',
          Programmed: 'Programmed',
        });
      });
      assert.ok((await metric('weir_controller_api_conflicts_total')) >= 1);
    });

    test('waits for the time in Retry-After, then continues', async (context) => {
      const { proxy, running, web, metric } = await startServing(context, cluster, 'throttled');
      const busy = { status: 429, headers: { 'retry-after': '2' }, body: '{"message": "too many requests"}' };
      const requestedAt: number[] = [];
      proxy.intercept(async ({ path, isWatch }) => {
        if (isLease(path)) return 'forward';
        if (path === SERVICES && isWatch) requestedAt.push(performance.now());
        return requestedAt.length >= 3 ? 'forward' : busy;
      });
      proxy.endWatches();
      await cluster.apply(service('late', 'throttled', 421));
      await eventually(async () => assert.deepEqual(await served(running, 'throttled'), ['late', 'web']));
      const [first = 0, second = 0, third = 0] = requestedAt;
      assert.ok(second - first >= 1_990 && third - second >= 1_990, `requested at ${requestedAt.join(', ')}`);
      assert.ok((await metric('weir_controller_api_throttled_total')) >= 2);
      assert.equal((await metric('weir_controller_api_requests_total{verb="watch",code_class="4xx"}')) >= 2, true);
      assert.equal((await running.store.table.meta())?.epoch, web.meta?.epoch);
      assert.equal(await versionOf(cluster, 'throttled'), web.version);
    });

    test('refuses an old list until the API server has caught up', async (context) => {
      const oldLists = new Map<string, ProxiedResponse>();
      const { proxy, running, metric } = await startServing(context, cluster, 'stale', async (request, forward) => {
        const response = await forward(request);
        if (isList(request)) oldLists.set(request.path, response);
        return response;
      });
      // Two Services are newer than the old list: `new` has a new port, and `heir` has the port of the deleted Service `web`.
      await cluster.apply(service('new', 'stale', 431));
      await waitUntilProgrammed(cluster, running, 'stale', 'new');
      await cluster.kubectl('delete', 'service', '-n', 'stale', 'web');
      await cluster.apply(service('heir', 'stale', 400));
      await waitUntilProgrammed(cluster, running, 'stale', 'heir');
      await waitUntilSettled(running, proxy);
      const now = async () => ({
        meta: await running.store.table.meta(),
        served: await served(running, 'stale'),
        versions: [await versionOf(cluster, 'stale', 'new'), await versionOf(cluster, 'stale', 'heir')],
      });
      const before = await now();
      assert.deepEqual(before.served, ['heir', 'new']);

      const from = proxy.requests.length;
      proxy.intercept(async (request) => (isList(request) ? (oldLists.get(request.path) ?? 'forward') : 'forward'));
      proxy.endWatches(EXPIRED);
      const servicesAsked = () => proxy.requests.slice(from).filter((each) => each.path === SERVICES).length;
      await eventually(async () => {
        await sendHeartbeat(running.store, 'a');
        assert.ok(servicesAsked() >= 3, 'the controller lists again');
        assert.ok((await metric('weir_controller_stale_reads_total')) >= 3);
      });
      await running.controller.idle();
      assert.deepEqual(await now(), before);
      assert.deepEqual(writesOf(proxy.requests.slice(from)), []);

      await cluster.kubectl('delete', 'service', '-n', 'stale', 'new');
      proxy.intercept(async () => 'forward');
      await eventually(async () => assert.deepEqual(await served(running, 'stale'), ['heir']));
      assert.equal((await running.store.table.meta())?.epoch, before.meta?.epoch);
    });

    test('lists everything before it leads if its watches were frozen', async (context) => {
      const { running: first, web } = await startServing(context, cluster, 'behind');
      const { proxy, kubeConfig } = await startProxiedApi(cluster);
      context.after(() => proxy.close());
      const { store, fleet } = first;
      const metrics = createMetrics();
      const second = startRunningController(cluster, { kubeConfig, store, fleet, metrics });
      context.after(() => second[Symbol.asyncDispose]());
      const watches = 'weir_controller_api_requests_total{verb="watch",code_class="2xx"}';
      await eventually(async () => assert.equal(await valueIn(metrics, watches), KINDS_WATCHED));
      proxy.freezeWatches();
      await cluster.apply(service('new', 'behind', 441));
      await waitUntilProgrammed(cluster, first, 'behind', 'new');
      const before = await store.table.meta();
      assert.notEqual(before?.revision, web.meta?.revision);

      await first.controller.close();
      await eventually(async () => {
        await sendHeartbeat(store, 'a');
        assert.ok(second.controller.translation());
      });
      assert.deepEqual(await served(second, 'behind'), ['new', 'web']);
      assert.deepEqual(withoutLeader(await store.table.meta()), withoutLeader(before));
    });
  },
);

const isLease = (path: string): boolean => path.includes('/leases');
const isList = ({ method, path, isWatch }: ProxiedRequest): boolean =>
  method === 'GET' && !isWatch && path === SERVICES;

/** Returns the writes, except writes of Leases and TenantUsages, because a new leader writes both with the current time. */
function writesOf(requests: readonly ProxiedRequest[]): string[] {
  const isExpected = (path: string): boolean => isLease(path) || path.includes('/tenantusages/');
  const writes = requests.filter(({ method, path }) => method !== 'GET' && !isExpected(path));
  return writes.map(({ method, path }) => `${method} ${path}`);
}

type Forward = (request: ProxiedRequest) => Promise<ProxiedResponse>;

/** Starts a controller behind a proxy, with one published Service whose status is written. */
async function startServing(
  context: TestContext,
  cluster: Cluster,
  name: string,
  lists?: (request: ProxiedRequest, forward: Forward) => Promise<ProxiedResponse>,
) {
  const { proxy, kubeConfig } = await startProxiedApi(cluster);
  context.after(() => proxy.close());
  if (lists !== undefined)
    proxy.intercept(async (request) => (isList(request) ? lists(request, proxy.forward) : 'forward'));
  await cluster.apply(namespace(name), service('web', name, 400));
  const metrics = createMetrics();
  const running = startRunningController(cluster, { kubeConfig, metrics });
  context.after(async () => {
    await running[Symbol.asyncDispose]();
    await cluster.kubectl('delete', 'namespace', name, '--wait=false');
  });
  await waitUntilProgrammed(cluster, running, name, 'web');
  await waitUntilSettled(running, proxy);
  const metric = (series: string): Promise<number> => valueIn(metrics, series);
  return {
    proxy,
    running,
    metric,
    web: {
      meta: await running.store.table.meta(),
      version: await versionOf(cluster, name),
      publishes: await metric('weir_controller_publishes_total{result="published"}'),
    },
  };
}

async function waitUntilProgrammed(
  cluster: Cluster,
  running: RunningController,
  namespace: string,
  name: string,
): Promise<void> {
  await eventually(async () => {
    await sendHeartbeat(running.store, 'a');
    assert.equal((await reasonsOf(cluster, namespace, name)).Programmed, 'Programmed');
  });
}

/** Waits until the controller sends no more requests, except requests for Leases and watches. */
async function waitUntilSettled({ store }: RunningController, proxy: ApiServerProxy): Promise<void> {
  const count = (): number => proxy.requests.filter(({ path, isWatch }) => !isWatch && !isLease(path)).length;
  const leases = (): number => proxy.requests.filter(({ path }) => isLease(path)).length;
  await eventually(async () => {
    const before = count();
    const renewals = leases();
    // Waits for two requests for the Lease, which take 2 s. By then all other runs and requests in progress have ended.
    await eventually(async () => {
      await sendHeartbeat(store, 'a');
      assert.ok(leases() >= renewals + 2);
    });
    assert.equal(count(), before);
  });
}

async function served({ store }: RunningController, namespace: string): Promise<string[]> {
  const copy = await store.table.read();
  const services = copy === undefined ? [] : entriesOf(copy.table, 'service');
  return services.flatMap((each) => (each.namespace === namespace ? [each.name] : [])).sort();
}

async function versionOf(cluster: Cluster, namespace: string, name = 'web'): Promise<string> {
  return (await serviceNow(cluster, namespace, name)).metadata.resourceVersion;
}

async function reasonsOf(cluster: Cluster, namespace: string, name: string): Promise<Record<string, string>> {
  const { status } = await serviceNow(cluster, namespace, name);
  const reasons = (status.conditions ?? []).map(({ type, reason }) => [type.replace('weir.dev/', ''), reason] as const);
  return Object.fromEntries(reasons.filter(([type]) => type !== 'Degraded'));
}

async function valueIn(metrics: Metrics, series: string): Promise<number> {
  const line = (await metrics.render()).split('\n').find((each) => each.startsWith(`${series} `));
  assert.ok(line, `no series ${series}`);
  return Number(line.slice(series.length + 1));
}

function withoutLeader(meta: (TablePosition & { readonly leader: number }) | undefined): unknown {
  return { ...meta, leader: 0 };
}
