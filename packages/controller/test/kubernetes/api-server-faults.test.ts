// A real API server, and in front of it whatever can go wrong on the way.
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

describe('an API server that', requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'), () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
    await addNode(cluster, 'a', '10.1.0.1');
  });
  after(() => cluster?.[Symbol.asyncDispose]());

  test('is away until the lead is lost, and comes back, writes no table, status or Event when nothing changed', async (context) => {
    const { proxy, running, web, metric } = await serving(context, cluster, 'away');
    proxy.intercept(async () => 'cut');
    proxy.closeConnections();
    await eventually(async () => {
      await sendHeartbeat(running.store, 'a');
      assert.equal(running.controller.isLeader, false);
    });
    assert.equal(await metric('weir_controller_leader'), 0);
    assert.deepEqual(await running.store.table.meta(), web.meta, 'what is served stays');
    assert.ok((await metric('weir_controller_watch_restarts_total{reason="error"}')) >= KINDS_WATCHED);
    const from = proxy.requests.length;
    proxy.intercept(async () => 'through');
    await eventually(async () => {
      await sendHeartbeat(running.store, 'a');
      assert.ok(running.controller.translation());
    });
    await settled(running, proxy);
    assert.deepEqual(writesOf(proxy.requests.slice(from)), []);
    assert.deepEqual(withoutLeader(await running.store.table.meta()), withoutLeader(web.meta));
    assert.equal(await versionOf(cluster, 'away'), web.version);
    assert.equal(await metric('weir_controller_publishes_total{result="published"}'), web.publishes);
    assert.equal(await metric('weir_controller_leader_changes_total'), 3);
  });

  test('has forgotten the history of a watch is listed again: what changed meanwhile is known, and the rest is not published again', async (context) => {
    const { proxy, running, web, metric } = await serving(context, cluster, 'gone');
    // What had been read when it began to lead was read again.
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
      return 'through';
    });
    proxy.endWatches(EXPIRED);
    await cluster.kubectl('delete', 'service', '-n', 'gone', 'web');
    await cluster.apply(service('api', 'gone', 401));
    gap.resolve();
    await eventually(async () => assert.deepEqual(await served(running, 'gone'), ['api']));
    assert.equal((await running.store.table.meta())?.epoch, web.meta?.epoch);
  });

  test('refuses a status because somebody changed the Service is told what is right for it now', async (context) => {
    const { proxy, running, metric } = await serving(context, cluster, 'conflict');
    const change = Promise.withResolvers<void>();
    let statuses = 0;
    proxy.intercept(async ({ method, path }) => {
      if (method !== 'PATCH' || !path.endsWith('/conflict/services/late/status')) return 'through';
      statuses += 1;
      await change.promise;
      return 'through';
    });
    await cluster.apply(service('late', 'conflict', 411));
    await eventually(() => assert.equal(statuses, 1));
    await cluster.kubectl('annotate', 'service', '-n', 'conflict', 'late', 'weir.dev/nodes=0');
    change.resolve();
    await eventually(async () => {
      await sendHeartbeat(running.store, 'a');
      assert.deepEqual(await saidBy(cluster, 'conflict', 'late'), {
        Accepted: 'InvalidAnnotation',
        Programmed: 'Programmed',
      });
    });
    assert.ok((await metric('weir_controller_api_conflicts_total')) >= 1);
  });

  test('throttles is not asked before the time that it names, and everything goes on after that', async (context) => {
    const { proxy, running, web, metric } = await serving(context, cluster, 'throttled');
    const busy = { status: 429, headers: { 'retry-after': '2' }, body: '{"message": "too many requests"}' };
    const asked: number[] = [];
    proxy.intercept(async ({ path, isWatch }) => {
      if (isLease(path)) return 'through';
      if (path === SERVICES && isWatch) asked.push(performance.now());
      return asked.length >= 3 ? 'through' : busy;
    });
    proxy.endWatches();
    await cluster.apply(service('late', 'throttled', 421));
    await eventually(async () => assert.deepEqual(await served(running, 'throttled'), ['late', 'web']));
    const [first = 0, second = 0, third = 0] = asked;
    assert.ok(second - first >= 1_990 && third - second >= 1_990, `asked at ${asked.join(', ')}`);
    assert.ok((await metric('weir_controller_api_throttled_total')) >= 2);
    assert.equal((await metric('weir_controller_api_requests_total{verb="watch",code_class="4xx"}')) >= 2, true);
    assert.equal((await running.store.table.meta())?.epoch, web.meta?.epoch);
    assert.equal(await versionOf(cluster, 'throttled'), web.version);
  });

  test('lags, and lists what was before, undoes nothing, and is listened to when it has caught up', async (context) => {
    const old = new Map<string, ProxiedResponse>();
    const { proxy, running, metric } = await serving(context, cluster, 'stale', async (request, through) => {
      const answer = await through(request);
      if (isList(request)) old.set(request.path, answer);
      return answer;
    });
    // All that is newer than that list: a Service with its port and status, and one that has the port of another that is gone.
    await cluster.apply(service('new', 'stale', 431));
    await programmed(cluster, running, 'stale', 'new');
    await cluster.kubectl('delete', 'service', '-n', 'stale', 'web');
    await cluster.apply(service('heir', 'stale', 400));
    await programmed(cluster, running, 'stale', 'heir');
    await settled(running, proxy);
    const now = async () => ({
      meta: await running.store.table.meta(),
      served: await served(running, 'stale'),
      versions: [await versionOf(cluster, 'stale', 'new'), await versionOf(cluster, 'stale', 'heir')],
    });
    const before = await now();
    assert.deepEqual(before.served, ['heir', 'new']);

    const from = proxy.requests.length;
    proxy.intercept(async (request) => (isList(request) ? (old.get(request.path) ?? 'through') : 'through'));
    proxy.endWatches(EXPIRED);
    const servicesAsked = () => proxy.requests.slice(from).filter((each) => each.path === SERVICES).length;
    await eventually(async () => {
      await sendHeartbeat(running.store, 'a');
      assert.ok(servicesAsked() >= 3, 'it asks again');
      assert.ok((await metric('weir_controller_stale_reads_total')) >= 3);
    });
    await running.controller.idle();
    assert.deepEqual(await now(), before);
    assert.deepEqual(writesOf(proxy.requests.slice(from)), []);

    await cluster.kubectl('delete', 'service', '-n', 'stale', 'new');
    proxy.intercept(async () => 'through');
    await eventually(async () => assert.deepEqual(await served(running, 'stale'), ['heir']));
    assert.equal((await running.store.table.meta())?.epoch, before.meta?.epoch);
  });

  test('tells a follower nothing any more, over watches that stay open, has it read everything before it leads', async (context) => {
    const { running: first, web } = await serving(context, cluster, 'behind');
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
    await programmed(cluster, first, 'behind', 'new');
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
});

const isLease = (path: string): boolean => path.includes('/leases');
const isList = ({ method, path, isWatch }: ProxiedRequest): boolean =>
  method === 'GET' && !isWatch && path === SERVICES;

/** But for Leases, and for what was used, which whoever leads anew writes down with the time. */
function writesOf(requests: readonly ProxiedRequest[]): string[] {
  const isDue = (path: string): boolean => isLease(path) || path.includes('/tenantusages/');
  const writes = requests.filter(({ method, path }) => method !== 'GET' && !isDue(path));
  return writes.map(({ method, path }) => `${method} ${path}`);
}

type Through = (request: ProxiedRequest) => Promise<ProxiedResponse>;

/** A controller behind a proxy, and one Service that it has published and told. */
async function serving(
  context: TestContext,
  cluster: Cluster,
  name: string,
  lists?: (request: ProxiedRequest, through: Through) => Promise<ProxiedResponse>,
) {
  const { proxy, kubeConfig } = await startProxiedApi(cluster);
  context.after(() => proxy.close());
  if (lists !== undefined)
    proxy.intercept(async (request) => (isList(request) ? lists(request, proxy.forward) : 'through'));
  await cluster.apply(namespace(name), service('web', name, 400));
  const metrics = createMetrics();
  const running = startRunningController(cluster, { kubeConfig, metrics });
  context.after(async () => {
    await running[Symbol.asyncDispose]();
    await cluster.kubectl('delete', 'namespace', name, '--wait=false');
  });
  await programmed(cluster, running, name, 'web');
  await settled(running, proxy);
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

async function programmed(
  cluster: Cluster,
  running: RunningController,
  namespace: string,
  name: string,
): Promise<void> {
  await eventually(async () => {
    await sendHeartbeat(running.store, 'a');
    assert.equal((await saidBy(cluster, namespace, name)).Programmed, 'Programmed');
  });
}

/** Nothing more is asked or written but what goes on for ever: Leases, and watches that are begun again. */
async function settled({ store }: RunningController, proxy: ApiServerProxy): Promise<void> {
  const count = (): number => proxy.requests.filter(({ path, isWatch }) => !isWatch && !isLease(path)).length;
  const leases = (): number => proxy.requests.filter(({ path }) => isLease(path)).length;
  await eventually(async () => {
    const before = count();
    const renewals = leases();
    // A renewal takes two requests, every 2 s: longer than a look at the proxies, and than what was under way.
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

async function saidBy(cluster: Cluster, namespace: string, name: string): Promise<Record<string, string>> {
  const { status } = await serviceNow(cluster, namespace, name);
  const said = (status.conditions ?? []).map(({ type, reason }) => [type.replace('weir.dev/', ''), reason] as const);
  return Object.fromEntries(said.filter(([type]) => type !== 'Degraded'));
}

async function valueIn(metrics: Metrics, series: string): Promise<number> {
  const line = (await metrics.render()).split('\n').find((each) => each.startsWith(`${series} `));
  assert.ok(line, `there is no series ${series}`);
  return Number(line.slice(series.length + 1));
}

function withoutLeader(meta: (TablePosition & { readonly leader: number }) | undefined): unknown {
  return { ...meta, leader: 0 };
}
