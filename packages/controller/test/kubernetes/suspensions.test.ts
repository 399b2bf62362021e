// Suspension objects on a real API server, and the suspensions in the store.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { MemoryStore } from '@weir/store';
import { eventually } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { type Cluster, startCluster, startRunningController } from '../fixtures/cluster.ts';

describe('Suspensions on a real API server', requireProgram('etcd', 'kube-apiserver', 'kubectl'), () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster?.[Symbol.asyncDispose]());

  test('are lifted if deleted without a controller, and deleted when they expire', async () => {
    const suspension = (name: string, more: object): object => ({
      apiVersion: 'weir.dev/v1alpha1',
      kind: 'Suspension',
      metadata: { name },
      spec: { target: { type: 'Tenant', tenant: 'nobody' }, ...more },
    });
    await using first = startRunningController(cluster, { fleet: 'cut' });
    const inForce = async (): Promise<string[]> =>
      (await first.store.suspensions.read()).suspensions.map((each) => each.name);
    await cluster.apply(suspension('gone', {}), suspension('stays', {}));
    await eventually(async () => assert.deepEqual((await inForce()).sort(), ['gone', 'stays']));
    await first[Symbol.asyncDispose]();
    await cluster.kubectl('delete', 'suspension', 'gone');
    await using second = startRunningController(cluster, { fleet: 'cut', store: first.store });
    await eventually(async () => assert.deepEqual(await inForce(), ['stays']));
    await cluster.apply(suspension('short', { until: new Date(Date.now() + 600_000).toISOString() }));
    await eventually(async () => assert.deepEqual((await inForce()).sort(), ['short', 'stays']));
    await cluster.apply(suspension('short', { until: new Date(Date.now() - 1_000).toISOString() }));
    await eventually(async () => {
      assert.deepEqual(await inForce(), ['stays']);
      assert.match(await cluster.kubectl('get', 'suspensions', '-o', 'name'), /^suspension.weir.dev\/stays\n$/);
    });
    const [stays] = (await second.store.suspensions.read()).suspensions;
    assert.match(stays?.madeBy ?? '', /^an unknown user of [a-z-]+$/);
    await cluster.kubectl('delete', 'suspension', 'stays');
    await eventually(async () => assert.deepEqual(await inForce(), []));
    assert.ok(second.controller.isLeader);
  });

  test('are created for suspensions that were made in the store', async () => {
    const store = new MemoryStore();
    const target = { kind: 'service', namespace: 'nowhere', service: 'web' } as const;
    const until = Date.now() + 600_000;
    const requested = {
      name: 'service.nowhere.web',
      target,
      message: 'Stop.',
      until,
      reason: 'SuspendedByOperator',
      madeBy: 'alice',
    } as const;
    await store.suspensions.put({ ...requested, uid: 'request-1', origin: { kind: 'store' }, createdAt: Date.now() });
    await using running = startRunningController(cluster, { store });
    await eventually(async () => {
      const [suspension, ...others] = (await running.store.suspensions.read()).suspensions;
      assert.deepEqual([suspension?.origin, others], [{ kind: 'kubernetes' }, []]);
      const { metadata, spec } = await cluster.get<{ metadata: { uid: string }; spec: object }>(
        'suspension',
        requested.name,
      );
      assert.deepEqual(
        { ...suspension, createdAt: null },
        { ...requested, uid: metadata.uid, origin: suspension?.origin, createdAt: null },
      );
      assert.deepEqual(spec, {
        target: { type: 'Service', namespace: 'nowhere', service: 'web' },
        message: 'Stop.',
        until: new Date(until).toISOString(),
      });
    });
    await cluster.kubectl('delete', 'suspension', requested.name);
    await eventually(async () => assert.deepEqual((await running.store.suspensions.read()).suspensions, []));
  });
});
