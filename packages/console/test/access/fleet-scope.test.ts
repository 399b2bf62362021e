// Tests rights in a cluster with two fleets. The TenantUsages of each fleet have the fleet's name.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startReviewServer } from '../fixtures/review-server.ts';
import { startTestConsole } from '../fixtures/test-console.ts';

test('refuses a user whose right is for the TenantUsage of another fleet', async () => {
  await using reviews = await startReviewServer({
    'token-inside': { name: 'dev', may: ['get tenantusages/inside shop'] },
    'token-weir': { name: 'other', may: ['get tenantusages/weir shop'] },
  });
  const auth = { kind: 'kubernetes', kubeconfig: reviews.kubeconfig } as const;
  await using console = await startTestConsole({ fleet: 'inside', auth });
  const request = (token: string) =>
    console.request('/api/v1/services', { headers: { authorization: `Bearer ${token}` } });
  assert.equal((await request('token-inside')).status, 200);
  assert.equal((await request('token-weir')).status, 403);
});
