import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addCounters,
  type Counters,
  closestUsageStep,
  planSeries,
  pointCountOf,
  pointsByStep,
  type SeriesPlan,
  type UsageStep,
  ZERO_COUNTERS,
} from '@weir/model';
import fc from 'fast-check';

const NOW = Date.parse('2028-03-01T18:43:15Z');
const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];

function planOf(sinceMs: number, step: UsageStep, untilMs = 0): SeriesPlan {
  const plan = planSeries({ since: NOW - sinceMs, until: NOW - untilMs, step }, NOW);
  return plan.kind === 'plan' ? plan : assert.fail(plan.message);
}

test('plans the points that contain the asked time, at multiples of the step', () => {
  const timeOf = (minute: number): string => new Date(minute * 60_000).toISOString().slice(0, 16);
  for (const [since, step, from, until, count] of [
    [7 * DAY, '1h', '2028-02-23T18:00', '2028-03-01T19:00', 169],
    [2 * HOUR, '5m', '2028-03-01T16:40', '2028-03-01T18:45', 25],
    [2 * DAY, '6h', '2028-02-28T18:00', '2028-03-02T00:00', 9],
    [30 * MINUTE, '1m', '2028-03-01T18:13', '2028-03-01T18:44', 31],
    [731 * DAY, '1d', '2026-03-01T00:00', '2028-03-02T00:00', 732],
  ] as const) {
    const plan = planOf(since, step);
    assert.deepEqual([timeOf(plan.from), timeOf(plan.until), pointCountOf(plan)], [from, until, count], step);
  }
});

test('refuses a range that is not kept and names a step that is kept', () => {
  const messageFor = (since: number, step: UsageStep): string => {
    const plan = planSeries({ since: NOW - since, until: NOW, step }, NOW);
    return plan.kind === 'mistake' ? plan.message : 'accepted';
  };
  assert.equal(messageFor(2 * DAY, '1m'), 'accepted');
  assert.equal(
    messageFor(7 * DAY, '5m'),
    'points for a step of 5m are kept for 2d; use step 1h, or a "since" of at most 2d',
  );
  assert.equal(
    messageFor(90 * DAY, '6h'),
    'points for a step of 6h are kept for 60d; use step 1d, or a "since" of at most 60d',
  );
  assert.equal(messageFor(800 * DAY, '1d'), 'points for a step of 1d are kept for 731d; use a "since" of at most 731d');
  assert.match(messageFor(0, '1h'), /"since" must be in the past/);
  assert.equal(planSeries({ since: NOW - HOUR, until: NOW - DAY, step: '1h' }, NOW).kind, 'mistake');
});

test('suggests the step that is as long as the text, or is spelled almost like it', () => {
  assert.deepEqual(['60m', '24h', '1H', '10m', 'hour'].map(closestUsageStep), ['1h', '1d', '1h', '1m', undefined]);
});

test('adds up all points of a plan, whatever the step', () => {
  const point = fc.record({ index: fc.nat(2_000), bytes: fc.nat(1_000_000) });
  fc.assert(
    fc.property(fc.array(point), fc.constantFrom<UsageStep>('1m', '5m', '15m'), (points, step) => {
      const plan = planOf(2 * DAY, step);
      const counted = points.map(({ index, bytes }) => ({
        minute: plan.from + index,
        counters: { ...ZERO_COUNTERS, receivedBytes: bytes },
      }));
      const sum = (all: readonly { readonly counters: Counters }[]): Counters =>
        all.reduce((total, { counters }) => addCounters(total, counters), ZERO_COUNTERS);
      const steps = pointsByStep(plan, counted);
      assert.deepEqual(sum(steps), sum(counted));
      assert.equal(steps.length, pointCountOf(plan));
      for (const [index, { minute }] of steps.entries()) assert.equal(minute, plan.from + index * plan.stepMinutes);
    }),
  );
});
