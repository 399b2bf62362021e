import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KubeConfig } from '@kubernetes/client-node';
import { startForwardProxy } from '@weir/testkit';
import { startReviewServer } from '../fixtures/review-server.ts';
import { startTestConsole } from '../fixtures/test-console.ts';

test('sends token reviews through the proxy of the kubeconfig', async () => {
  await using proxy = await startForwardProxy();
  await using reviews = await startReviewServer({ dev: { name: 'dev', may: ['get tenantusages shop'] } });
  const cluster = reviews.kubeconfig.getCurrentCluster();
  assert.ok(cluster !== null);
  const kubeconfig = new KubeConfig();
  kubeconfig.loadFromClusterAndUser({ ...cluster, proxyUrl: proxy.url }, { name: 'console' });
  await using console = await startTestConsole({ auth: { kind: 'kubernetes', kubeconfig } });
  const { status } = await console.request('/api/v1/services', { headers: { authorization: 'Bearer dev' } });
  assert.equal(status, 200);
  assert.ok(proxy.connectTargets.length > 0);
  assert.deepEqual([...new Set(proxy.connectTargets)], [new URL(cluster.server).host]);
});
