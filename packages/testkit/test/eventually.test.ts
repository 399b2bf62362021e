import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../src/index.ts';

test('eventually returns what the assertion returned when it first held', async () => {
  let attempts = 0;
  const answer = await eventually(
    () => {
      attempts++;
      assert.ok(attempts >= 3);
      return `after ${attempts}`;
    },
    { intervalMs: 1 },
  );
  assert.equal(answer, 'after 3');
});

test('eventually gives up with the last failure and how long it waited', async () => {
  const failing = eventually(() => assert.fail('still no address'), { timeoutMs: 5, intervalMs: 1 });
  await assert.rejects(failing, /still so after 5 ms: still no address/);
});
