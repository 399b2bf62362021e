import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '@weir/runtime';
import { kubeApiErrorFor } from '../../src/kubernetes/kube-api-error.ts';
import { KubernetesUsageArchive } from '../../src/usage/kubernetes-usage-archive.ts';

const usage = { namespace: 'shop', status: { updatedAt: '2026-01-01T00:00:00Z', months: [], lives: [] } };

function answering(statusCode: number): KubernetesUsageArchive {
  const request = async (): Promise<never> => {
    throw kubeApiErrorFor('PATCH', { statusCode, headers: {} }, '{"message":"etcdserver: request is too large"}');
  };
  return new KubernetesUsageArchive({ api: { request }, fleet: 'weir', log: silentLogger() });
}

test('a TenantUsage that the API server fails to write, as one too large for etcd, does not end the turn of the others', async () => {
  assert.deepEqual(await answering(500).write(usage), {
    kind: 'refused',
    reason: 'PATCH: etcdserver: request is too large',
  });
});

test('an API server that is away or busy is waited for', async () => {
  for (const status of [429, 503, 504]) await assert.rejects(answering(status).write(usage), { code: 'AWAY' });
});
