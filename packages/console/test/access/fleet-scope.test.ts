// Two fleets of a cluster, each with TenantUsages of its own name.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startReviewServer } from '../fixtures/review-server.ts';
import { startTestConsole } from '../fixtures/test-console.ts';

test('a right to the TenantUsage of one fleet shows nothing at the console of another', async () => {
  await using reviews = await startReviewServer({
    'of-inside': { name: 'dev', may: ['get tenantusages/inside shop'] },
    'of-weir': { name: 'other', may: ['get tenantusages/weir shop'] },
  });
  const auth = { kind: 'kubernetes', kubeconfig: reviews.kubeconfig } as const;
  await using console = await startTestConsole({ fleet: 'inside', auth });
  const ask = (token: string) => console.request('/api/v1/services', { headers: { authorization: `Bearer ${token}` } });
  assert.equal((await ask('of-inside')).status, 200);
  assert.equal((await ask('of-weir')).status, 403);
});
