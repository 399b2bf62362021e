// ConfigMaps on a real API server, read with exactly the permissions of the chart or fewer.
import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { entriesOf } from '@weir/model';
import { silentLogger, systemClock } from '@weir/runtime';
import { eventually as eventuallyWithin } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { KubernetesSource } from '../../src/watch/kubernetes/kubernetes-source.ts';
import { addNode, type Cluster, namespace, startCluster } from '../fixtures/cluster.ts';
import { createIsolatedFleet } from '../fixtures/isolated-fleet.ts';

const eventually = <T>(assertion: () => T | Promise<T>): Promise<T> =>
  eventuallyWithin(assertion, { timeoutMs: 45_000, intervalMs: 50 });

const configMap = (inNamespace: string, name: string, page: string): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: inNamespace },
  data: { '404.html': page },
});
const service = (inNamespace: string, name: string, pages?: string): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: {
    name,
    namespace: inNamespace,
    annotations: pages === undefined ? {} : { 'weir.dev/error-pages': pages },
  },
  spec: {
    type: 'LoadBalancer',
    loadBalancerClass: 'weir.dev/weir',
    selector: { app: name },
    ports: [{ port: 80, appProtocol: 'http' }],
  },
});

describe('a source that watches ConfigMaps', {
  ...requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'),
  concurrency: true,
}, () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
    await addNode(cluster, 'a', '10.1.0.1');
  });
  after(() => cluster?.[Symbol.asyncDispose]());

  /** Starts a source that signs in as an account with this ClusterRole. */
  const start = async (context: TestContext, account: string, role: string): Promise<KubernetesSource> => {
    await cluster.kubectl('create', 'serviceaccount', account, '-n', 'weir-system');
    await bind(account, role);
    const token = await cluster.kubectl('create', 'token', account, '-n', 'weir-system');
    const api = new KubeApi(await cluster.signIn(token));
    const isOwned = ({ namespace }: { readonly namespace: string }): boolean => namespace.startsWith(account);
    const source = new KubernetesSource({ api, clock: systemClock, log: silentLogger(), isOwned });
    context.after(async () => {
      await source.close();
      api.close();
    });
    return source;
  };
  const bind = (account: string, role: string): Promise<string> =>
    cluster.kubectl(
      'create',
      'clusterrolebinding',
      `${account}-${role}`,
      `--clusterrole=${role}`,
      `--serviceaccount=weir-system:${account}`,
    );
  const pagesOf = (source: KubernetesSource): readonly string[] =>
    (source.snapshot().configMaps ?? []).map((each) => {
      const page = each.errorPages.kind === 'good' ? each.errorPages.pages['404.html'] : each.errorPages.why;
      return `${each.namespace}/${each.name}: ${page}`;
    });

  test('follows the ConfigMaps that Services name, and no others', async (context) => {
    await cluster.apply(namespace('named'), namespace('other'));
    await cluster.apply(configMap('named', 'pages', 'first'), configMap('named', 'unnamed', 'x'));
    await cluster.apply(service('named', 'web', 'pages'), service('other', 'web', 'pages'));
    const source = await start(context, 'named', 'weir-controller');
    await source.synced(context.signal);
    assert.deepEqual(pagesOf(source), ['named/pages: first'], 'once synced, the ConfigMap was read');
    assert.equal(source.snapshot().unreadConfigMaps, undefined);
    await cluster.apply(configMap('named', 'pages', 'second'));
    await eventually(() => assert.deepEqual(pagesOf(source), ['named/pages: second']));
    const withoutPages: string[] = [];
    source.onChange(() => {
      const { services, configMaps = [] } = source.snapshot();
      const api = services.find(({ namespace, name }) => namespace === 'named' && name === 'api');
      if (api !== undefined && !configMaps.some(({ name }) => name === 'more')) withoutPages.push(api.uid);
    });
    await cluster.apply(configMap('named', 'more', 'more'));
    await cluster.apply(service('named', 'api', 'more'));
    await eventually(() => assert.deepEqual(pagesOf(source), ['named/pages: second', 'named/more: more']));
    assert.deepEqual(withoutPages, [], 'the Service appears together with its ConfigMap');
    await source.refresh(context.signal);
    assert.deepEqual(pagesOf(source), ['named/pages: second', 'named/more: more']);
    await cluster.kubectl('delete', 'configmap', '-n', 'named', 'more');
    await eventually(() => assert.deepEqual(pagesOf(source), ['named/pages: second']));
    await cluster.kubectl('delete', 'service', '-n', 'named', 'web');
    await eventually(() => assert.deepEqual(pagesOf(source), []));
  });

  test('is synced without the permission, and recovers when it is granted', async (context) => {
    await cluster.apply(namespace('barred'));
    await cluster.apply(configMap('barred', 'pages', 'page'), configMap('barred', 'more', 'page'));
    await cluster.apply(service('barred', 'web', 'pages'), service('barred', 'api', 'more'));
    const resources =
      'services,namespaces,nodes,pods,endpointslices.discovery.k8s.io,servicecidrs.networking.k8s.io,tenantpolicies.weir.dev,suspensions.weir.dev';
    await cluster.kubectl('create', 'clusterrole', 'no-config-maps', '--verb=list,watch', `--resource=${resources}`);
    const source = await start(context, 'barred', 'no-config-maps');
    await source.synced(context.signal);
    assert.deepEqual([...(source.snapshot().unreadConfigMaps ?? [])].sort(), [
      ['barred/more', 'forbidden'],
      ['barred/pages', 'forbidden'],
    ]);
    const problems = source.snapshot().problems.filter(({ code }) => code === 'Forbidden');
    assert.equal(problems.length, 1, 'one problem for all ConfigMaps');
    assert.match(problems[0]?.message ?? '', /cannot list resource "configmaps".*error pages/);
    await bind('barred', 'weir-controller');
    await eventually(() => assert.deepEqual(pagesOf(source).toSorted(), ['barred/more: page', 'barred/pages: page']));
    assert.deepEqual(source.snapshot().problems, []);
  });

  test('publishes the pages of a changed ConfigMap, and keeps them after a restart without the permission', async (context) => {
    const own = await createIsolatedFleet(cluster, 'configmaps');
    const web = own.service('web', { port: 80 }) as { readonly metadata: object; readonly spec: object };
    const metadata = { ...web.metadata, annotations: { 'weir.dev/error-pages': 'pages' } };
    const spec = { ...web.spec, ports: [{ port: 80, appProtocol: 'http' }] };
    await cluster.apply(configMap('configmaps', 'pages', 'first'), { ...web, metadata, spec });
    const published = async (): Promise<readonly [page: string | undefined, degraded: readonly string[]]> => {
      const table = (await own.store.table.read())?.table;
      const services = table === undefined ? [] : entriesOf(table, 'service');
      const reasons = services.find(({ name }) => name === 'web')?.degraded.map(({ reason }) => reason) ?? [];
      const pages = table === undefined ? [] : entriesOf(table, 'error-pages');
      return [pages[0]?.pages['404.html'], reasons.filter((reason) => reason === 'ErrorPagesNotUsed')];
    };
    const first = own.start();
    context.after(() => first.close());
    await eventually(async () => assert.deepEqual(await published(), ['first', []]));
    await cluster.apply(configMap('configmaps', 'pages', 'second'));
    await eventually(async () => assert.deepEqual(await published(), ['second', []]));
    await first.close();
    await own.denyReading('configmaps');
    const second = own.start();
    context.after(() => second.close());
    await eventually(async () => assert.deepEqual(await published(), ['second', ['ErrorPagesNotUsed']]));
    await own.denyReading(null);
    await cluster.apply(configMap('configmaps', 'pages', 'third'));
    await eventually(async () => assert.deepEqual(await published(), ['third', []]));
  });
});
