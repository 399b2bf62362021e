import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '@weir/runtime';
import { createMemoryStore } from '@weir/store';
import { runningConsole } from '../build/running-console.ts';

test('before the first whole table nothing is shown as if it were empty', async () => {
  const store = createMemoryStore();
  const seeded = { store, beat: async () => {}, flush: async () => {} };
  await using console = await runningConsole({ seeded, store, clock: systemClock });
  for (const path of ['services', 'tenants', 'problems', 'table', 'usage', 'live']) {
    const { status, json } = await console.ask(`/api/v1/${path}`);
    assert.equal(status, 503, path);
    assert.match(json.error.message, /no routing table has been read yet.*is a controller running/);
  }
  assert.equal((await console.ask('/healthz')).status, 200);
  assert.equal((await console.ask('/readyz')).status, 503);
});
