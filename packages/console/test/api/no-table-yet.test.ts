import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import { startTestConsole } from '../fixtures/test-console.ts';

test('answers 503 instead of empty lists before the first complete table', async () => {
  const store = new MemoryStore();
  const seeded = { store, sendHeartbeat: async () => {}, flushUsage: async () => {} };
  await using console = await startTestConsole({ seeded, store, clock: systemClock });
  for (const path of ['services', 'tenants', 'problems', 'table', 'usage', 'live']) {
    const { status, json } = await console.request(`/api/v1/${path}`);
    assert.equal(status, 503, path);
    assert.match(json.error.message, /no routing table has been read yet.*check that a controller is running/);
  }
  assert.equal((await console.request('/healthz')).status, 200);
  assert.equal((await console.request('/readyz')).status, 503);
});
