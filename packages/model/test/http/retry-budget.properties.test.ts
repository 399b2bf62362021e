import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  createRetryBudget,
  MAX_RETRY_SHARE,
  MIN_RETRIES_PER_SECOND,
  type RetryBudget,
  recordRequest,
  takeRetry,
} from '@weir/model';
import fc from 'fast-check';

const WINDOW_SECONDS = 10;

function takeMany(budget: RetryBudget, second: number, count: number): number {
  let taken = 0;
  for (let attempt = 0; attempt < count; attempt += 1) if (takeRetry(budget, second)) taken += 1;
  return taken;
}

test('allows 30 retries in ten seconds without requests, and again when they have left the window', () => {
  const budget = createRetryBudget();
  assert.deepEqual(
    [0, 4, 9, 10, 19, 40].map((second) => takeMany(budget, second, 100)),
    [30, 0, 0, 30, 0, 30],
  );
});

test('allows one retry more for every five requests', () => {
  const budget = createRetryBudget();
  for (let request = 0; request < 1_000; request += 1) recordRequest(budget, 7);
  assert.equal(takeMany(budget, 16, 1_000), 230);
  assert.equal(takeMany(budget, 17, 1_000), 0);
});

test('agrees with a count over the complete history', () => {
  const event = fc.record({
    afterSeconds: fc.constantFrom(0, 0, 0, 0, 1, 1, 2, 9, 10, 11, 1_000),
    requests: fc.nat(40),
    retries: fc.nat(40),
  });
  let refused = 0;
  fc.assert(
    fc.property(fc.array(event, { maxLength: 60 }), (events) => {
      const budget = createRetryBudget();
      const requests: number[] = [];
      const retries: number[] = [];
      let second = 0;
      const inWindow = (times: readonly number[]): number =>
        times.filter((time) => time > second - WINDOW_SECONDS).length;
      for (const each of events) {
        second += each.afterSeconds;
        for (let request = 0; request < each.requests; request += 1) {
          recordRequest(budget, second);
          requests.push(second);
        }
        for (let retry = 0; retry < each.retries; retry += 1) {
          const limit = inWindow(requests) * MAX_RETRY_SHARE + MIN_RETRIES_PER_SECOND * WINDOW_SECONDS;
          const isAllowed = inWindow(retries) + 1 <= limit;
          assert.equal(takeRetry(budget, second), isAllowed);
          if (isAllowed) retries.push(second);
          else refused += 1;
        }
      }
    }),
  );
  assert.ok(refused > 0, 'some retries were refused');
});
