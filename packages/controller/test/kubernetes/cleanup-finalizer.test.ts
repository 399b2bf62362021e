// Tests `controller.cleanupFinalizer` on a real API server with the permissions of the chart. The permissions are the same with and without
// this setting.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { silentLogger, systemClock } from '@weir/runtime';
import { eventually as eventuallyWithin } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { uninstallFleet } from '../../src/uninstall/uninstall-fleet.ts';
import { renderChart } from '../fixtures/chart-release.ts';
import {
  addNode,
  type Cluster,
  namespace,
  type RunningController,
  sendHeartbeat,
  service,
  startCluster,
  startRunningController,
} from '../fixtures/cluster.ts';

const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup';
const SPACE = 'held';

const eventually = <T>(assertion: () => T | Promise<T>): Promise<T> =>
  eventuallyWithin(assertion, { timeoutMs: 30_000, intervalMs: 100 });

interface ServiceJson {
  readonly metadata: { readonly finalizers?: readonly string[] };
  readonly spec: object;
  readonly status: { readonly loadBalancer: object };
}

describe('a fleet with the cleanup finalizer', {
  ...requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl', 'helm'),
  timeout: 180_000,
}, () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
    await addNode(cluster, 'a', '10.1.0.1');
    await cluster.apply(namespace(SPACE));
  });
  after(() => cluster?.[Symbol.asyncDispose]());

  const now = (name: string): Promise<ServiceJson> => cluster.get<ServiceJson>('service', '-n', SPACE, name);
  const finalizersOf = async (name: string): Promise<readonly string[]> => (await now(name)).metadata.finalizers ?? [];
  const waitUntilServed = ({ store }: RunningController, name: string): Promise<void> =>
    eventually(async () => {
      await sendHeartbeat(store, 'a');
      assert.ok('ingress' in (await now(name)).status.loadBalancer);
    });
  const toClusterIp = (name: string): Promise<string> =>
    cluster.kubectl('patch', 'service', name, '-n', SPACE, '--type=merge', '-p', '{"spec":{"type":"ClusterIP"}}');
  const waitUntilGone = (name: string): Promise<void> => eventually(() => assert.rejects(now(name), /not found/));

  test('removes the finalizer from deleted and former load balancers, but not the finalizer of others', async () => {
    await using running = startRunningController(cluster, { cleanupFinalizer: true });
    const theirs = service('theirs', SPACE, 82) as { readonly metadata: object };
    await cluster.apply(service('deleted', SPACE, 80), service('changed', SPACE, 81), {
      ...theirs,
      metadata: { ...theirs.metadata, finalizers: [FINALIZER] },
    });
    for (const name of ['deleted', 'changed', 'theirs']) {
      await waitUntilServed(running, name);
      assert.deepEqual(await finalizersOf(name), [FINALIZER]);
    }

    await cluster.kubectl('delete', 'service', 'deleted', '-n', SPACE, '--timeout=30s');
    await waitUntilGone('deleted');
    await toClusterIp('changed');
    await eventually(async () => assert.deepEqual(await finalizersOf('changed'), []));
    await toClusterIp('theirs');
    await eventually(async () => {
      const { managedFields } = (
        await cluster.get<{ metadata: { managedFields: readonly { manager: string }[] } }>(
          'service',
          '-n',
          SPACE,
          'theirs',
          '--show-managed-fields',
        )
      ).metadata;
      assert.ok(!managedFields.some(({ manager }) => manager.startsWith('weir-finalizer')));
    });
    assert.deepEqual(await finalizersOf('theirs'), [FINALIZER]);
  });

  test('removes the finalizer when it is switched off, and keeps serving', async () => {
    const first = startRunningController(cluster, { fleet: 'finalized', cleanupFinalizer: true });
    await cluster.apply(service('kept', SPACE, 90));
    await waitUntilServed(first, 'kept');
    assert.deepEqual(await finalizersOf('kept'), [FINALIZER]);
    await first.controller.close();
    await using second = startRunningController(cluster, { fleet: 'finalized', store: first.store });
    await eventually(async () => assert.deepEqual(await finalizersOf('kept'), []));
    await waitUntilServed(second, 'kept');
  });

  test('removes the finalizer on uninstall with the permissions of the hook, even from Services deleted without a controller', async () => {
    const running = startRunningController(cluster, { fleet: 'weir', cleanupFinalizer: true });
    await cluster.apply(service('left', SPACE, 100), service('waiting', SPACE, 101));
    for (const name of ['left', 'waiting']) await waitUntilServed(running, name);
    await running.controller.close();
    await cluster.kubectl('delete', 'service', 'waiting', '-n', SPACE, '--wait=false');
    assert.deepEqual(await finalizersOf('waiting'), [FINALIZER]);

    const rendered = await renderChart('weir', '--namespace=weir-system', '-s=templates/uninstall/job.yaml');
    const rights = rendered.split('\n---\n').filter((each) => !/^kind: Job$/m.test(each));
    await cluster.kubectl('apply', '-f', '-', { stdin: rights.join('\n---\n') });
    const token = await cluster.kubectl('create', 'token', 'weir-uninstall', '-n', 'weir-system');
    const api = new KubeApi(await cluster.signIn(token));
    try {
      await uninstallFleet({
        api,
        fleet: 'weir',
        loadBalancerClass: 'weir.dev/weir',
        namespace: 'weir-system',
        store: running.store,
        proxyTimeoutMs: 200,
        clock: systemClock,
        log: silentLogger(),
        signal: AbortSignal.timeout(60_000),
      });
    } finally {
      api.close();
    }
    await waitUntilGone('waiting');
    assert.deepEqual(await finalizersOf('left'), []);
  });
});
