import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '@weir/runtime';
import { kubeApiErrorFor } from '../../src/kubernetes/kube-api-error.ts';
import { KubernetesUsageArchive } from '../../src/usage/kubernetes-usage-archive.ts';

const usage = { namespace: 'shop', status: { updatedAt: '2026-01-01T00:00:00Z', months: [], lives: [] } };

function archiveAnswering(statusCode: number): KubernetesUsageArchive {
  const request = async (): Promise<never> => {
    throw kubeApiErrorFor('PATCH', { statusCode, headers: {} }, '{"message":"etcdserver: request is too large"}');
  };
  return new KubernetesUsageArchive({ api: { request }, fleet: 'weir', log: silentLogger() });
}

test('refuses a single TenantUsage for status 500, such as an object too large for etcd', async () => {
  assert.deepEqual(await archiveAnswering(500).write(usage), {
    kind: 'refused',
    reason: 'PATCH: etcdserver: request is too large',
  });
});

test('leaves a single TenantUsage that cannot be deleted to the next round', async () => {
  await archiveAnswering(500).remove('shop');
  await assert.rejects(archiveAnswering(503).remove('shop'), { code: 'AWAY' });
});

test('rejects if the API server is unreachable or busy', async () => {
  for (const status of [429, 503, 504]) await assert.rejects(archiveAnswering(status).write(usage), { code: 'AWAY' });
});
