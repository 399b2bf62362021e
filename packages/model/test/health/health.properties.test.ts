// Checks properties of the set of endpoints in use, for random histories of health checks and connection attempts.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type EjectionState,
  type EndpointHealth,
  evaluatePortHealth,
  INITIAL_CHECK_STATE,
  INITIAL_EJECTION_STATE,
  isEjected,
  isEjectionHistoryOver,
  MAX_EJECTION_MS,
  recordCheckResult,
  recordConnectFailures,
  recordConnectSuccess,
  recordFailedAnswers,
  recordGoodAnswer,
} from '@weir/model';
import fc from 'fast-check';

interface Happening {
  readonly endpoint: number;
  readonly afterMs: number;
  readonly what: 'good' | 'bad' | 'connected' | 'refused' | 'answered' | 'unanswered';
}

const happening: fc.Arbitrary<Happening> = fc.record({
  endpoint: fc.nat(5),
  afterMs: fc.constantFrom(0, 0, 0, 0, 1, 1, 1, 1, 50, 50, 50, 50, 500, 500, 500, 9_999, 9_999, 60_000),
  what: fc.constantFrom(
    'good',
    'bad',
    'bad',
    'connected',
    'refused',
    'refused',
    'refused',
    'refused',
    'answered',
    'unanswered',
  ),
});
const histories = fc.record({
  count: fc.integer({ min: 1, max: 6 }),
  happenings: fc.array(happening, { maxLength: 80, size: 'max' }),
});
const TIMING = { healthyThreshold: 2, unhealthyThreshold: 2 };

interface Timed extends Happening {
  readonly at: number;
}

function timed(happenings: readonly Happening[]): Timed[] {
  let at = 0;
  return happenings.map((each) => {
    at += each.afterMs;
    return { ...each, at };
  });
}

/** Returns the health of `count` endpoints after these events, in the order of the endpoints. */
function after(count: number, happenings: readonly Timed[]): EndpointHealth[] {
  return Array.from({ length: count }, (_, index) => {
    let check = INITIAL_CHECK_STATE;
    let ejection = INITIAL_EJECTION_STATE;
    for (const { endpoint, at, what } of happenings) {
      if (endpoint !== index) continue;
      if (what === 'refused') ejection = recordConnectFailures(ejection, 1, at);
      else if (what === 'connected') ejection = recordConnectSuccess(ejection, at);
      else if (what === 'unanswered') ejection = recordFailedAnswers(ejection, at);
      else if (what === 'answered') ejection = recordGoodAnswer(ejection, at);
      else check = recordCheckResult(check, what === 'good', TIMING);
    }
    return { key: `10.0.0.${index}|80`, passes: check.passes, isConfirmed: check.isConfirmed, ejection };
  });
}

const endOf = (happenings: readonly Timed[]): number => happenings.at(-1)?.at ?? 0;

test('uses at least one endpoint, and ejects at most half of them', () => {
  let ejected = 0;
  let panics = 0;
  fc.assert(
    fc.property(histories, ({ count, happenings }) => {
      const all = timed(happenings);
      const endpoints = after(count, all);
      const judgement = evaluatePortHealth(endpoints, endOf(all));
      assert.ok(judgement.excluded.length < count);
      assert.ok(judgement.ejected.length * 2 <= count);
      const isOut = new Set([...judgement.failing, ...judgement.ejected]);
      const works = endpoints.some(({ isConfirmed, ejection }) => isConfirmed && !isEjected(ejection, endOf(all)));
      assert.deepEqual(judgement.replaceable, works ? judgement.failing : []);
      for (const key of judgement.replaceable)
        assert.ok(judgement.excluded.includes(key), 'new connections go to others');
      for (const key of judgement.excluded) assert.ok(isOut.has(key), 'nobody is left out without a reason');
      if (judgement.ejected.length > 0) ejected += 1;
      else if (judgement.nextChangeAt < Number.POSITIVE_INFINITY) panics += 1;
    }),
    { numRuns: 500 },
  );
  assert.ok(ejected > 0 && panics > 0, 'both happened');
});

test('ignores the checks when no endpoint passes', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9 }), (count) => {
      const endpoints = Array.from({ length: count }, (_, index) => ({
        key: `${index}`,
        passes: false,
        isConfirmed: false,
        ejection: INITIAL_EJECTION_STATE,
      }));
      assert.deepEqual(evaluatePortHealth(endpoints, 0).excluded, []);
    }),
  );
});

test('ends ejections after their time, and returns when the result changes next', () => {
  fc.assert(
    fc.property(histories, ({ count, happenings }) => {
      const all = timed(happenings);
      const endpoints = after(count, all);
      let now = endOf(all);
      const endsBy = now + MAX_EJECTION_MS;
      for (;;) {
        const { nextChangeAt, ejected } = evaluatePortHealth(endpoints, now);
        if (nextChangeAt === Number.POSITIVE_INFINITY) {
          assert.deepEqual(ejected, []);
          return;
        }
        assert.ok(nextChangeAt > now && nextChangeAt <= endsBy);
        assert.deepEqual(
          evaluatePortHealth(endpoints, (now + nextChangeAt) / 2).excluded,
          evaluatePortHealth(endpoints, now).excluded,
        );
        now = nextChangeAt;
      }
    }),
  );
});

test('does not depend on the order of events of different endpoints', () => {
  fc.assert(
    fc.property(histories, fc.infiniteStream(fc.nat(5)), ({ count, happenings }, order) => {
      const all = timed(happenings);
      const waiting = Map.groupBy(all, ({ endpoint }) => endpoint);
      const shuffled: Timed[] = [];
      while (shuffled.length < all.length) {
        const next = waiting.get(order.next().value ?? 0)?.shift();
        shuffled.push(...(next === undefined ? [...waiting.values()].flatMap((left) => left.splice(0, 1)) : [next]));
      }
      const now = endOf(all);
      assert.deepEqual(evaluatePortHealth(after(count, shuffled), now), evaluatePortHealth(after(count, all), now));
    }),
  );
});

test('ejects at the same time whether failures are reported together or one by one', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 }), (count) => {
      let one = INITIAL_EJECTION_STATE;
      for (let time = 0; time < count; time += 1) one = recordConnectFailures(one, 1, 5);
      assert.deepEqual(recordConnectFailures(INITIAL_EJECTION_STATE, count, 5), one);
    }),
  );
});

test('treats an endpoint whose history is over as one that never failed', () => {
  fc.assert(
    fc.property(histories, fc.integer({ min: 0, max: 3_600_000 }), ({ count, happenings }, laterMs) => {
      const all = timed(happenings);
      const now = endOf(all) + laterMs;
      for (const { ejection } of after(count, all)) {
        if (isEjectionHistoryOver(ejection, now)) {
          for (const fail of [recordFailedAnswers, (state: EjectionState) => recordConnectFailures(state, 3, now)])
            assert.deepEqual(fail(ejection, now), fail(INITIAL_EJECTION_STATE, now));
        }
      }
    }),
  );
});
