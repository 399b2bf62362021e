import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  CALM_SHARE,
  initialRuleState,
  isRecordOf,
  MIN_CALM_MS,
  type Rule,
  type RuleEvent,
  type RuleInput,
  type RuleState,
  stepRule,
} from '@weir/model';
import fc from 'fast-check';

const INTERVAL_MS = 5_000;

const rules: fc.Arbitrary<Rule> = fc.record({
  name: fc.constant('busy'),
  metric: fc.constantFrom('outBitsPerSecond', 'requestsPerSecond'),
  above: fc.constantFrom(10, 50, 90),
  forMs: fc.constantFrom(0, 10_000, 30_000),
  action: fc.constantFrom('Notify', 'Throttle', 'Suspend'),
  throttleTo: fc.constant(null),
  durationMs: fc.constantFrom(null, 20_000, 120_000),
});

/**
 * Samples every five seconds: a value, or undefined if no fresh value is known; and whether a user ends a Suspension. Values repeat, because
 * independent values are almost never low for a whole minute, which ends an action.
 */
const samples = fc
  .array(
    fc.record({
      value: fc.option(fc.integer({ min: 0, max: 100 }), { nil: undefined, freq: 6 }),
      isReleased: fc.integer({ min: 0, max: 9 }).map((each) => each === 0),
      count: fc.integer({ min: 1, max: 16 }),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((runs) =>
    runs.flatMap(({ value, isReleased, count }) =>
      Array.from({ length: count }, (_, index) => ({ value, isReleased: isReleased && index === 0 })),
    ),
  );

interface Moment {
  readonly at: number;
  readonly value: number | undefined;
  readonly before: RuleState;
  readonly state: RuleState;
  readonly event: RuleEvent | undefined;
}

/** Runs a rule over samples. The wall clock starts elsewhere than the monotonic clock. */
function run(
  rule: Rule,
  sequence: readonly { readonly value: number | undefined; readonly isReleased: boolean }[],
): Moment[] {
  let state = initialRuleState();
  let isSuspended = false;
  return sequence.map(({ value, isReleased }, index) => {
    const at = index * INTERVAL_MS;
    if (isReleased) isSuspended = false;
    const input: RuleInput = { at, now: 1_700_000_000_000 + at, value, isSuspended };
    const before = state;
    const step = stepRule(rule, state, input);
    state = step.state;
    if (step.event !== undefined) isSuspended = step.event.kind === 'begin' && rule.action === 'Suspend';
    return { at, value, before, state, event: step.event };
  });
}

const isActing = (state: RuleState): boolean => state.record?.phase === 'acting';

describe('a rule', () => {
  test('begins only after fresh samples above the threshold for the whole time of for', () => {
    fc.assert(
      fc.property(rules, samples, (rule, sequence) => {
        const moments = run(rule, sequence);
        for (const [index, { at, event }] of moments.entries()) {
          if (event?.kind !== 'begin') continue;
          const covered = moments.slice(0, index + 1).filter((each) => at - each.at <= rule.forMs);
          assert.ok(at - (covered[0]?.at ?? 0) >= rule.forMs, 'the samples cover the time of for');
          assert.ok(covered.every(({ value }) => value !== undefined && value > rule.above));
        }
      }),
    );
  });

  test('begins if the samples were not above the threshold once, and are then above it for the time of for', () => {
    fc.assert(
      fc.property(rules, samples, (rule, sequence) => {
        const high = Array.from({ length: 8 }, () => ({ value: rule.above + 1, isReleased: false }));
        const moments = run(rule, [...sequence, { value: 0, isReleased: false }, ...high]);
        const tail = moments.slice(sequence.length);
        assert.ok(tail.some(({ state }) => isActing(state)));
      }),
    );
  });

  test('acts again only after a sample that is not above the threshold', () => {
    fc.assert(
      fc.property(rules, samples, (rule, sequence) => {
        const moments = run(rule, sequence);
        const begins = moments.flatMap(({ event }, index) => (event?.kind === 'begin' ? [index] : []));
        for (const [position, begin] of begins.entries()) {
          const previous = begins[position - 1];
          if (previous === undefined) continue;
          const between = moments.slice(previous + 1, begin);
          assert.ok(between.some(({ value }) => value !== undefined && value <= rule.above));
          const release = between.findIndex(({ event }) => event?.kind === 'released');
          const after =
            release === -1 ? [0] : between.slice(release + 1).map(({ value }) => value ?? Number.POSITIVE_INFINITY);
          assert.ok(
            after.some((value) => value <= rule.above),
            'after the release, a sample is not above the threshold',
          );
        }
      }),
    );
  });

  test('without duration ends a Notify or Throttle only after low samples for a minute and for the time of for', () => {
    fc.assert(
      fc.property(rules, samples, (rule, sequence) => {
        const moments = run(rule, sequence);
        for (const [index, { at, event }] of moments.entries()) {
          if (event?.kind !== 'calm') continue;
          assert.equal(event.record.until, null);
          const wanted = Math.max(rule.forMs, MIN_CALM_MS);
          const covered = moments.slice(0, index + 1).filter((each) => at - each.at <= wanted);
          assert.ok(at - (covered[0]?.at ?? 0) >= wanted);
          assert.ok(covered.every(({ value }) => value !== undefined && value < rule.above * CALM_SHARE));
        }
      }),
      { numRuns: 400 },
    );
  });

  test('with an end acts exactly until this end, unless a user ends the Suspension', () => {
    fc.assert(
      fc.property(rules, samples, (rule, sequence) => {
        for (const { at, state, event } of run(rule, sequence)) {
          const now = 1_700_000_000_000 + at;
          if (isActing(state) && typeof state.record?.until === 'number') assert.ok(now < state.record.until);
          if (event?.kind === 'expired') assert.ok(now >= (event.record.until ?? Number.POSITIVE_INFINITY));
        }
      }),
    );
  });

  test('in a new term continues an action, and begins for anew', () => {
    fc.assert(
      fc.property(rules, samples, (rule, sequence) => {
        const last = run(rule, sequence).at(-1)?.state ?? initialRuleState();
        const next = initialRuleState(last.record);
        assert.equal(isActing(next), isActing(last));
        if (last.record !== undefined) assert.ok(isRecordOf(last.record, rule));
        if (isActing(next)) return;
        const input = { at: 1, now: 1, value: rule.above + 1, isSuspended: false };
        assert.equal(stepRule(rule, next, input).event !== undefined, rule.forMs === 0 && last.record === undefined);
      }),
    );
  });

  test('does not act while its Suspension is in force', () => {
    const rule: Rule = {
      name: 'a',
      metric: 'trafficPerMonth',
      above: 5,
      forMs: 0,
      action: 'Suspend',
      throttleTo: null,
      durationMs: null,
    };
    const input = { at: 0, now: 0, value: 9, isSuspended: true };
    assert.equal(stepRule(rule, initialRuleState(), input).event, undefined);
  });

  test('of trafficPerMonth throttles until the end of the month (UTC)', () => {
    const rule: Rule = {
      name: 'a',
      metric: 'trafficPerMonth',
      above: 5,
      forMs: 0,
      action: 'Throttle',
      throttleTo: 1,
      durationMs: null,
    };
    const begin = stepRule(rule, initialRuleState(), {
      at: 0,
      now: Date.parse('2027-12-30T23:00:00Z'),
      value: 9,
      isSuspended: false,
    });
    assert.equal(begin.state.record?.until, Date.parse('2028-01-01T00:00:00Z'));
    const end = stepRule(rule, begin.state, {
      at: 9,
      now: Date.parse('2028-01-01T00:00:01Z'),
      value: 0,
      isSuspended: false,
    });
    assert.deepEqual([end.event?.kind, end.state.record], ['expired', undefined]);
  });
});
