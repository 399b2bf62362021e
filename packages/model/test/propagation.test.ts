import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { changedAtFor, earliest, PROPAGATION_BUCKETS_SECONDS, propagationSeconds } from '@weir/model';

const MINUTE_MS = 60_000;
const HEARD_AT = 1_700_000_000_000;

describe('the time of a change', () => {
  const changedAt = (triggeredAt?: number, previousTriggeredAt?: number): number =>
    changedAtFor({ observedAt: HEARD_AT, triggeredAt, previousTriggeredAt });

  test('is the trigger time of the object', () => {
    assert.equal(changedAt(HEARD_AT - 700), HEARD_AT - 700);
    assert.equal(changedAt(HEARD_AT - 700, HEARD_AT - 701), HEARD_AT - 700);
  });

  test('is the time of observation if the object has no new trigger time', () => {
    assert.equal(changedAt(), HEARD_AT);
    assert.equal(changedAt(undefined, HEARD_AT - 700), HEARD_AT);
    assert.equal(changedAt(HEARD_AT - 700, HEARD_AT - 700), HEARD_AT);
    assert.equal(changedAt(HEARD_AT - 800, HEARD_AT - 700), HEARD_AT);
  });

  test('is the time of observation if the trigger time is older than ten minutes', () => {
    assert.equal(changedAt(HEARD_AT - 10 * MINUTE_MS), HEARD_AT - 10 * MINUTE_MS);
    assert.equal(changedAt(HEARD_AT - 10 * MINUTE_MS - 1), HEARD_AT);
  });

  test('is not before the object last had other content, nor before its creation', () => {
    const since = (triggeredAt: number, notBefore: number): number =>
      changedAtFor({ observedAt: HEARD_AT, triggeredAt, previousTriggeredAt: undefined, notBefore });
    assert.equal(since(HEARD_AT - 9 * MINUTE_MS, HEARD_AT - 2_000), HEARD_AT - 2_000);
    assert.equal(since(HEARD_AT - 2_000, HEARD_AT - 9 * MINUTE_MS), HEARD_AT - 2_000);
    assert.equal(since(HEARD_AT - 2_000, HEARD_AT + 1), HEARD_AT);
  });

  test('is never in the future', () => {
    assert.equal(changedAt(HEARD_AT + 5_000), HEARD_AT);
  });
});

test('earliest returns the earlier time, and ignores an unknown time', () => {
  assert.equal(earliest(2, 1), 1);
  assert.equal(earliest(undefined, 1), 1);
  assert.equal(earliest(1, undefined), 1);
  assert.equal(earliest(undefined, undefined), undefined);
});

test('propagation takes 0 s if differing clocks make it negative', () => {
  assert.equal(propagationSeconds(HEARD_AT, HEARD_AT + 1_500), 1.5);
  assert.equal(propagationSeconds(HEARD_AT + 300, HEARD_AT), 0);
});

test('the buckets ascend from 1 ms to 60 s and contain both targets', () => {
  assert.deepEqual(
    [...PROPAGATION_BUCKETS_SECONDS].sort((a, b) => a - b),
    PROPAGATION_BUCKETS_SECONDS,
  );
  assert.equal(PROPAGATION_BUCKETS_SECONDS[0], 0.001);
  assert.equal(PROPAGATION_BUCKETS_SECONDS.at(-1), 60);
  assert.ok(PROPAGATION_BUCKETS_SECONDS.includes(0.03) && PROPAGATION_BUCKETS_SECONDS.includes(0.06));
});
