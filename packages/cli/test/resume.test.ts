import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryStore } from '@weir/store';
import { startConsoleOf } from './fixtures/console.ts';
import { runWeirProcess } from './fixtures/weir-process.ts';

test('weir resume fails and prints the kubectl command if the console cannot delete the Suspension', async () => {
  const store = new MemoryStore();
  await store.suspensions.put({
    uid: 'u',
    name: 'stop-shop',
    target: { kind: 'tenant', tenant: 'shop' },
    message: 'Stop.',
    until: null,
    reason: 'SuspendedByOperator',
    origin: { kind: 'kubernetes' },
    createdAt: null,
  });
  const console = await startConsoleOf(store);
  try {
    const { code, stdout, output } = await runWeirProcess(['resume', 'shop', '--server', console.url]);
    assert.equal(code, 1, output);
    assert.equal(stdout, '');
    assert.match(output, /^weir: Suspension "stop-shop" .*; use kubectl delete suspension stop-shop, or .*\n$/);
  } finally {
    await console.close();
    await store.close();
  }
});
