import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DEFAULT_TABLE_BYTES, minuteOf, monthOf } from '@weir/model';
import { silentLogger } from '@weir/runtime';
import { eventually } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { KubernetesUsageArchive } from '../../src/usage/kubernetes-usage-archive.ts';
import type { ArchiveOutcome, TenantUsage } from '../../src/usage/tenant-usage.ts';
import { type Cluster, namespace, service, startCluster, startRunningController } from '../fixtures/cluster.ts';
import { serviceNow } from '../fixtures/service-status.ts';

interface UsageJson {
  readonly status: { readonly tenant: Readonly<Record<string, unknown>> };
}

describe('TenantUsage', requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'), () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster?.[Symbol.asyncDispose]());

  const tenantOf = async (name: string): Promise<UsageJson['status']['tenant']> =>
    (await cluster.get<UsageJson>('tenantusage', '-n', name, 'limited')).status.tenant;

  test('has the counters, and seeds a new store', async () => {
    await cluster.apply(namespace('used'), service('web', 'used', 150));
    await using first = startRunningController(cluster, { fleet: 'used' });
    const { uid } = (await serviceNow(cluster, 'used', 'web')).metadata;
    const slot = { service: uid, tenant: 'used', namespace: 'used', name: 'web' };
    const requestsByCodeClass = { '2xx': 2, '3xx': 0, '4xx': 1, '5xx': 0, none: 0 };
    const counters = { receivedBytes: 2 ** 50 + 1, sentBytes: 7, connections: 1, requests: 3, requestsByCodeClass };
    const now = minuteOf(Date.now());
    const report = { node: 'a', life: 1, slots: [{ ...slot, points: [{ minute: now, counters }] }] };
    await eventually(async () => assert.equal(await first.store.usage.isSeeded(), true));
    assert.deepEqual(await first.store.usage.flush(report), { kind: 'accepted' });
    await first[Symbol.asyncDispose]();
    // A new leader writes the usage at once.
    await using second = startRunningController(cluster, { fleet: 'used', store: first.store });
    await eventually(async () => {
      const usage = await cluster.get<{ status: { tenant: object } }>('tenantusage', '-n', 'used', 'used');
      const limits = { tableBytes: DEFAULT_TABLE_BYTES };
      const total = { name: 'used', month: monthOf(Date.now()), ...counters, services: 1, ports: 1, limits };
      assert.deepEqual(usage.status.tenant, total);
    });
    await second[Symbol.asyncDispose]();
    await using third = startRunningController(cluster, { fleet: 'used' });
    await eventually(async () => assert.equal(await third.store.usage.isSeeded(), true));
    assert.deepEqual(await third.store.usage.rows(monthOf(Date.now()), 'used'), [{ ...slot, counters }]);
    assert.deepEqual(await third.store.usage.flush(report), { kind: 'accepted' });
    assert.deepEqual(await third.store.usage.rows(monthOf(Date.now()), 'used'), [{ ...slot, counters }]);
    await cluster.kubectl('delete', 'namespace', 'used', '--wait=false');
  });

  test('is written after the limits of its tenant are removed', async () => {
    const tableBytes = 4 * 1024 * 1024;
    const policy = (limits: object): object => ({
      apiVersion: 'weir.dev/v1alpha1',
      kind: 'TenantPolicy',
      metadata: { name: 'limited' },
      spec: { namespaceSelector: { matchLabels: { team: 'limited' } }, limits },
    });
    await cluster.apply(
      policy({ services: 2 }),
      namespace('limited', { team: 'limited' }),
      service('web', 'limited', 80),
    );
    await using first = startRunningController(cluster, { fleet: 'limited' });
    await eventually(async () => assert.deepEqual((await tenantOf('limited')).limits, { tableBytes, services: 2 }));
    await first[Symbol.asyncDispose]();
    // Each new leader writes the usage at once.
    for (const [limits, written] of [
      [{}, { tableBytes }],
      [{ ports: 3 }, { tableBytes, ports: 3 }],
      [{}, { tableBytes }],
    ] as const) {
      await cluster.apply(policy(limits));
      await using _next = startRunningController(cluster, { fleet: 'limited', store: first.store });
      await eventually(async () => assert.deepEqual((await tenantOf('limited')).limits, written));
    }
  });

  test('is overwritten by the leader after manual edits, and a delayed write reverts nothing', async () => {
    const api = new KubeApi(cluster.kubeConfig);
    const sent: string[] = [];
    // The archive `later` writes between two writes of the archive `held`.
    const archives = ['held', 'later', 'read'].map((name) => {
      const request: KubeApi['request'] = (options) => {
        const { metadata } = (options.body ?? {}) as { metadata?: { resourceVersion?: string } };
        if (options.method === 'PATCH')
          sent.push(`${name} ${metadata?.resourceVersion === undefined ? 'any' : 'of its version'}`);
        return api.request(options);
      };
      return new KubernetesUsageArchive({ api: { request }, fleet: 'weir', log: silentLogger() });
    });
    const [held, later, read] = archives as [KubernetesUsageArchive, KubernetesUsageArchive, KubernetesUsageArchive];
    const usage = (second: number): TenantUsage => ({
      namespace: 'versions',
      status: { updatedAt: new Date(second * 1000).toISOString(), months: [], lives: [] },
    });
    await cluster.apply(namespace('versions'));
    for (const [archive, second] of [
      [held, 1],
      [held, 2],
      [later, 3],
      [held, 4],
    ] as const) {
      assert.deepEqual(await archive.write(usage(second)), { kind: 'written' });
    }
    await read.read();
    await read.write(usage(5));
    assert.deepEqual(sent, [
      'held any',
      'held of its version',
      'later any',
      'held of its version',
      'held any',
      'read of its version',
    ]);
    api.close();
  });

  test('reports whether a failed write is for a missing namespace or refused', async () => {
    const api = new KubeApi(cluster.kubeConfig);
    const archive = new KubernetesUsageArchive({ api, fleet: 'weir', log: silentLogger() });
    const status = { updatedAt: new Date().toISOString(), months: [], lives: [] };
    const reasonOf = (archived: ArchiveOutcome): string =>
      archived.kind === 'refused' ? archived.reason : archived.kind;
    assert.deepEqual(await archive.write({ namespace: 'nowhere', status }), { kind: 'namespace-gone' });
    await cluster.apply(namespace('written'));
    assert.deepEqual(await archive.write({ namespace: 'written', status }), { kind: 'written' });
    const wrong = await archive.write({ namespace: 'written', status: { ...status, updatedAt: 'today' } });
    assert.match(reasonOf(wrong), /status\.updatedAt.*Invalid value: "today"/);
    await cluster.kubectl('delete', 'crd', 'tenantusages.weir.dev');
    await eventually(async () =>
      assert.match(
        reasonOf(await archive.write({ namespace: 'written', status })),
        /could not find|page not found|404/,
      ),
    );
    api.close();
  });
});
