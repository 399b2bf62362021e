// The chart's pre-delete hook with exactly its own permissions.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { EMPTY_TABLE } from '@weir/model';
import { silentLogger, systemClock } from '@weir/runtime';
import { MemoryStore, type Store } from '@weir/store';
import { eventually } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { type UninstallOptions, uninstallFleet } from '../../src/uninstall/uninstall-fleet.ts';
import { renderChart } from '../fixtures/chart-release.ts';
import {
  addNode,
  type Cluster,
  namespace,
  type RunningController,
  service,
  startCluster,
  startRunningController,
} from '../fixtures/cluster.ts';
import { eventuallyWithHeartbeats, type ServiceJson, serviceNow } from '../fixtures/service-status.ts';

interface PolicyJson {
  readonly metadata: { readonly managedFields: readonly { readonly manager: string; readonly subresource?: string }[] };
}

const OTHER = { loadBalancerClass: 'weir.dev/edge', classless: false };
const SERVICES = 7;

describe('the uninstall of a fleet', {
  ...requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl', 'helm'),
  timeout: 120_000,
}, () => {
  let cluster: Cluster;
  let api: KubeApi;
  before(async () => {
    cluster = await startCluster();
    const args = ['--namespace=weir-system', '-s=templates/uninstall/job.yaml'];
    const rendered = await renderChart('weir', ...args);
    const rights = rendered.split('\n---\n').filter((each) => !/^kind: Job$/m.test(each));
    await cluster.kubectl('apply', '-f', '-', { stdin: rights.join('\n---\n') });
    const token = await cluster.kubectl('create', 'token', 'weir-uninstall', '-n', 'weir-system');
    api = new KubeApi(await cluster.signIn(token));
    await addNode(cluster, 'a', '10.1.0.1');
  });
  after(async () => {
    api?.close();
    await cluster?.[Symbol.asyncDispose]();
  });

  const uninstall = (store: Store | undefined, more: Partial<UninstallOptions> = {}): Promise<void> =>
    uninstallFleet({
      api,
      fleet: 'weir',
      loadBalancerClass: 'weir.dev/weir',
      namespace: 'weir-system',
      store,
      proxyTimeoutMs: 200,
      pageSize: 3,
      clock: systemClock,
      log: silentLogger(),
      signal: AbortSignal.timeout(60_000),
      ...more,
    });
  const now = (name: string): Promise<ServiceJson> => serviceNow(cluster, 'left', name);
  const served = (running: RunningController, name: string): Promise<ServiceJson> =>
    eventuallyWithHeartbeats(running, async () => {
      const found = await now(name);
      assert.ok('ingress' in found.status.loadBalancer);
      return found;
    });

  /** Returns the field managers of a policy's status. */
  const statusManagersOf = async (policy: string): Promise<readonly string[]> => {
    const { metadata } = await cluster.get<PolicyJson>('tenantpolicy', policy, '--show-managed-fields');
    return metadata.managedFields.flatMap(({ manager, subresource }) => (subresource === 'status' ? [manager] : []));
  };

  test('removes its status of Services and policies, and keeps the status of other fleets', async () => {
    const policy = { namespaceSelector: {}, limits: { services: 1000, ports: 1000 } };
    await cluster.apply(namespace('left'), {
      apiVersion: 'weir.dev/v1alpha1',
      kind: 'TenantPolicy',
      metadata: { name: 'all' },
      spec: policy,
    });
    const theirs = service('theirs', 'left', 8443) as { readonly spec: object };
    await cluster.apply(
      ...Array.from({ length: SERVICES }, (_, index) => service(`web-${index}`, 'left', 10_000 + index)),
      { ...theirs, spec: { ...theirs.spec, loadBalancerClass: OTHER.loadBalancerClass } },
    );
    await using running = startRunningController(cluster, { fleet: 'weir' });
    await using edge = startRunningController(cluster, { fleet: 'edge', serviceClass: OTHER });
    await served(running, `web-${SERVICES - 1}`);
    const before = await served(edge, 'theirs');
    // The controllers write the first TenantUsages when all proxies have reported.
    for (const { store } of [running, edge]) await store.usage.flush({ node: 'a', life: 1, slots: [], isFull: true });
    await eventually(async () => {
      await cluster.get('tenantusage', '-n', 'left', 'weir');
      await cluster.get('tenantusage', '-n', 'left', 'edge');
      const { status } = await cluster.get<{ status: object }>('tenantpolicy', 'all');
      assert.ok('tenants' in status);
    });
    await running[Symbol.asyncDispose]();

    await uninstall(running.store);

    const { items } = await cluster.get<{ items: readonly ServiceJson[] }>('services', '-n', 'left', '-l=!none');
    const withStatus = items.filter(
      ({ status }) => 'ingress' in status.loadBalancer || status.conditions !== undefined,
    );
    assert.equal(withStatus.length, 1);
    assert.deepEqual(await now('theirs'), before);
    const { items: usages } = await cluster.get<{ items: readonly { metadata: { name: string } }[] }>(
      'tenantusages',
      '-A',
    );
    assert.deepEqual([...new Set(usages.map(({ metadata }) => metadata.name))], ['edge']);
    // The other fleet has written the status of the policy under its own name.
    await eventually(async () => assert.deepEqual(await statusManagersOf('all'), ['weir-controller:weir.dev/edge']));
    assert.deepEqual((await running.store.table.read())?.table, EMPTY_TABLE);
    await assert.rejects(cluster.get('lease', 'weir-controller-weir', '-n', 'weir-system'), /not found/);
    // A Job that failed at its end runs again, and then has nothing to do.
    await uninstall(running.store);
  });

  test('stops the controllers of the release first', async () => {
    const labels = { app: 'controller' };
    await cluster.apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'weir-controller', namespace: 'weir-system' },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'controller', image: 'none' }] } },
      },
    });
    const pods = async (): Promise<number> =>
      (await cluster.get<{ items: readonly unknown[] }>('pods', '-n', 'weir-system')).items.length;
    await eventually(async () => assert.equal(await pods(), 2));
    await uninstall(new MemoryStore(), { deployment: { namespace: 'weir-system', name: 'weir-controller' } });
    assert.equal(await pods(), 0);
    await cluster.kubectl('delete', 'deployment', 'weir-controller', '-n', 'weir-system');
  });

  test('stops waiting for a controller on a lost node', async () => {
    const labels = { app: 'lost' };
    const metadata = { name: 'weir-controller', namespace: 'weir-system' };
    const container = { name: 'controller', image: 'none' };
    await cluster.apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata,
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        // The node has no kubelet, so the pod never ends.
        template: { metadata: { labels }, spec: { nodeName: 'a', containers: [container] } },
      },
    });
    const pods = async (): Promise<number> =>
      (await cluster.get<{ items: readonly unknown[] }>('pods', '-n', 'weir-system', '-l=app=lost')).items.length;
    await eventually(async () => assert.equal(await pods(), 1));
    await uninstall(new MemoryStore(), { deployment: metadata, podTimeoutMs: 200 });
    assert.equal(await pods(), 1);
  });

  test('works without Redis and without the custom resources', async () => {
    await cluster.kubectl('delete', 'crd', 'tenantusages.weir.dev', 'tenantpolicies.weir.dev');
    await uninstall(undefined);
  });
});
