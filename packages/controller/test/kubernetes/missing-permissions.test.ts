// A controller on a real API server with all permissions of the chart except to read one kind.
import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { type Entry, entriesOf } from '@weir/model';
import type { MemoryStore } from '@weir/store';
import { eventually as eventuallyWithin } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import type { KubernetesController } from '../../src/controller/kubernetes-controller.ts';
import { addNode, type Cluster, namespace, sendHeartbeat, startCluster } from '../fixtures/cluster.ts';
import { createIsolatedFleet, type IsolatedFleet } from '../fixtures/isolated-fleet.ts';

const eventually = <T>(assertion: () => T | Promise<T>): Promise<T> =>
  eventuallyWithin(assertion, { timeoutMs: 45_000, intervalMs: 100 });

describe('a controller without the permission to read a kind', {
  ...requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'),
  concurrency: true,
}, () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
    await addNode(cluster, 'a', '10.1.0.1');
  });
  after(() => cluster?.[Symbol.asyncDispose]());

  const acceptedOf = async (store: MemoryStore, service: string): Promise<string | undefined> => {
    const copy = await store.table.read();
    return copy && entriesOf(copy.table, 'service').find(({ name }) => name === service)?.accepted.reason;
  };
  const addressesOf = async (store: MemoryStore): Promise<string[]> => {
    const copy = await store.table.read();
    const entries = copy === undefined ? [] : entriesOf(copy.table, 'endpoints');
    return entries.flatMap(({ endpoints }) => endpoints.map(({ address }) => address)).sort();
  };
  /** Returns the entries of the table, except problems, sorted by id. */
  const publishedEntries = async (store: MemoryStore): Promise<Entry[]> =>
    [...((await store.table.read())?.table.entries.values() ?? [])]
      .filter(({ kind }) => kind !== 'problem')
      .sort((a, b) => (a.id < b.id ? -1 : 1));
  const start = (context: TestContext, own: IsolatedFleet): KubernetesController => {
    const controller = own.start();
    context.after(() => controller.close());
    return controller;
  };
  const forbidden = (controller: KubernetesController): string[] =>
    controller
      .problems()
      .flatMap(({ code, subject, message }) => (code === 'Forbidden' ? [`${subject}: ${message}`] : []));

  const KINDS = [
    ['pods', 'earlier endpoints stay in use'],
    ['nodes', 'Services stay on the nodes that served them before'],
    ['tenantpolicies', 'tenants keep their limits'],
    ['suspensions', 'suspensions stay in force'],
  ] as const;

  for (const [resource, effect] of KINDS) {
    test(`${resource}: keeps the table, serves a new Service, and recovers without a restart`, async (context) => {
      const own = await createIsolatedFleet(cluster, resource);
      const other = `${own.namespace}-new`;
      const first = start(context, own);
      await eventually(async () => {
        assert.deepEqual(await addressesOf(own.store), own.endpoints);
        assert.equal(await acceptedOf(own.store, 'second'), 'QuotaExceeded');
      });
      await first.close();
      const before = await publishedEntries(own.store);

      await own.denyReading(resource);
      const second = start(context, own);
      const [problem = '', ...others] = await eventually(() => {
        const problems = forbidden(second);
        assert.equal(problems.length, 1, problems.join('\n'));
        assert.ok(second.translation());
        return problems;
      });
      assert.deepEqual(others, []);
      assert.match(
        problem,
        new RegExp(`cannot list resource "${resource}".*until the controller can list ${resource}\\S*, ${effect}`),
      );
      assert.match(problem, new RegExp(`kubectl auth can-i list ${resource}`));
      await second.idle();
      assert.deepEqual(await publishedEntries(own.store), before);

      await cluster.kubectl('delete', 'service', '-n', own.namespace, 'second');
      await cluster.apply(namespace(other), own.service('new', { namespace: other, port: 9_000 }));
      await eventually(async () => {
        await sendHeartbeat(own.store, 'a');
        assert.equal(await acceptedOf(own.store, 'new'), 'Accepted');
        const { status } = await cluster.get<{ status: { loadBalancer: { ingress?: readonly { ip: string }[] } } }>(
          'service',
          '-n',
          other,
          'new',
        );
        assert.deepEqual(
          status.loadBalancer.ingress?.map(({ ip }) => ip),
          ['10.1.0.1'],
        );
      });

      await own.denyReading(null);
      await eventually(() => assert.deepEqual(forbidden(second), []));
    });
  }

  test('services: publishes nothing, and recovers without a restart', async (context) => {
    const own = await createIsolatedFleet(cluster, 'services');
    await own.denyReading('services');
    const controller = start(context, own);
    await eventually(() => assert.match(forbidden(controller).join('\n'), /^services: .*no new Services are served/));
    assert.equal(await own.store.table.meta(), undefined);
    await own.denyReading(null);
    await eventually(async () => assert.equal(await acceptedOf(own.store, 'web'), 'Accepted'));
  });
});
