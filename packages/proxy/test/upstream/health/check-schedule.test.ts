import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CheckSchedule, type RunningCheck, type ScheduledCheck } from '../../../src/upstream/health/check-schedule.ts';

/** Returns a random number generator with repeatable results (a Lehmer generator). */
function randomOf(seed: number): () => number {
  let state = seed + 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

interface Began {
  readonly key: string;
  readonly at: number;
}

/**
 * Runs the schedule for `forMs` of simulated time, and returns the checks that began. A check takes `tookMs(key)`; if
 * that is infinite, the check never ends.
 */
function run(
  schedule: CheckSchedule,
  { forMs, tookMs = () => 1 }: { readonly forMs: number; readonly tookMs?: (key: string) => number },
): Began[] {
  const began: Began[] = [];
  const ends: { readonly at: number; readonly check: RunningCheck }[] = [];
  let now = 0;
  while (now <= forMs) {
    for (const due of ends.filter(({ at }) => at <= now)) {
      ends.splice(ends.indexOf(due), 1);
      schedule.end(due.check, now);
    }
    for (let next = schedule.begin(now); next !== undefined; next = schedule.begin(now)) {
      began.push({ key: next.key, at: now });
      const took = tookMs(next.key);
      if (took !== Number.POSITIVE_INFINITY) ends.push({ at: now + took, check: next });
    }
    const wakeAt = Math.min(schedule.wakeAt(now) ?? Number.POSITIVE_INFINITY, ...ends.map(({ at }) => at));
    now = Math.max(now + 0.5, wakeAt);
  }
  return began;
}

function maxInAnySecond(began: readonly Began[]): number {
  let max = 0;
  let from = 0;
  began.forEach(({ at }, index) => {
    while ((began[from] as Began).at <= at - 1_000) from += 1;
    max = Math.max(max, index - from + 1);
  });
  return max;
}

function add(schedule: CheckSchedule, count: number, over: Partial<ScheduledCheck> = {}): void {
  const check = { group: 'shop', intervalMs: 1_000, cost: 1, ...over };
  for (let index = 0; index < count; index += 1) schedule.add({ ...check, key: `${check.group}-${index}` }, 0);
}

test('limits 1,000 endpoints to 500 checks in any second, with equal shares, and counts the delayed checks', () => {
  const schedule = new CheckSchedule(randomOf(1), 0);
  add(schedule, 1_000);
  const began = run(schedule, { forMs: 10_000 });
  const max = maxInAnySecond(began);
  assert.ok(max <= 500 && max >= 470, `${max}`);
  const counts = Map.groupBy(began, ({ key }) => key);
  assert.equal(counts.size, 1_000);
  for (const { length } of counts.values()) assert.ok(length >= 3 && length <= 6, `${length}`);
  assert.ok(schedule.late > 500);
});

test('runs fewer checks of a higher cost, and leaves room for the checks of another tenant', () => {
  const schedule = new CheckSchedule(randomOf(5), 0);
  add(schedule, 1_000, { group: 'costly', cost: 5 });
  add(schedule, 10, { group: 'modest' });
  const began = run(schedule, { forMs: 10_000 });
  const [costly = [], modest = []] = ['costly', 'modest'].map((group) =>
    began.filter(({ key }) => key.startsWith(group)),
  );
  const max = maxInAnySecond(costly);
  assert.ok(max <= 100 && max >= 90, `${max}`);
  assert.ok(modest.length >= 90, `${modest.length}`);
});

test('gives two tenants above the limit equal shares of the cost, whatever their checks cost', () => {
  const schedule = new CheckSchedule(randomOf(6), 0);
  add(schedule, 1_000, { group: 'costly', cost: 5 });
  add(schedule, 1_000, { group: 'modest' });
  const began = run(schedule, { forMs: 10_000 }).filter(({ at }) => at > 2_000);
  const costly = 5 * began.filter(({ key }) => key.startsWith('costly')).length;
  const modest = began.length - costly / 5;
  assert.ok(Math.abs(costly - modest) < 0.1 * modest, `${costly} and ${modest}`);
});

test('below the limit begins each check within a tenth of its interval, spread from the start', () => {
  const schedule = new CheckSchedule(randomOf(2), 0);
  add(schedule, 100, { intervalMs: 2_000 });
  const began = run(schedule, { forMs: 20_000 });
  for (const times of Map.groupBy(began, ({ key }) => key).values()) {
    times.slice(1).forEach(({ at }, index) => {
      const gap = at - (times[index] as Began).at;
      assert.ok(gap >= 1_800 - 10 && gap <= 2_200 + 20, `${gap}`);
    });
  }
  const firstHalf = began.slice(0, 100).filter(({ at }) => at < 1_000).length;
  assert.ok(firstHalf > 25 && firstHalf < 75, `${firstHalf}`);
  assert.equal(schedule.late, 0);
});

test('checks a tenant in time while another tenant has too many endpoints', () => {
  const schedule = new CheckSchedule(randomOf(3), 0);
  add(schedule, 5_000, { group: 'greedy' });
  add(schedule, 10, { group: 'modest' });
  const began = run(schedule, { forMs: 10_000 });
  for (const times of Map.groupBy(
    began.filter(({ key }) => key.startsWith('modest')),
    ({ key }) => key,
  ).values()) {
    assert.ok(times.length >= 9, `${times.length}`);
  }
});

test('bounds the running checks of a tenant whose endpoints hang, and leaves room for another tenant', () => {
  const schedule = new CheckSchedule(randomOf(4), 0);
  add(schedule, 2_000, { group: 'hanging' });
  add(schedule, 10, { group: 'modest' });
  const tookMs = (key: string): number => (key.startsWith('hanging') ? Number.POSITIVE_INFINITY : 1);
  const began = run(schedule, { forMs: 10_000, tookMs });
  assert.ok(began.filter(({ key }) => key.startsWith('hanging')).length <= 256);
  assert.ok(began.filter(({ key }) => key.startsWith('modest')).length >= 85);
});

test('for any sequence of calls loses no check, runs none twice at once, and begins none after its removal', () => {
  const step = fc.record({
    key: fc.constantFrom('a', 'b', 'c', 'd'),
    what: fc.constantFrom('add', 'remove', 'begin', 'begin', 'end'),
    afterMs: fc.constantFrom(0, 3, 40, 700, 20_000),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), fc.nat(1_000), (steps, seed) => {
      const schedule = new CheckSchedule(randomOf(seed), 0);
      const wanted = new Set<string>();
      const running: RunningCheck[] = [];
      let now = 0;
      for (const { key, what, afterMs } of steps) {
        now += afterMs;
        if (what === 'add' && !wanted.has(key)) {
          wanted.add(key);
          schedule.add({ key, group: key < 'c' ? 'one' : 'two', intervalMs: 100, cost: 1 }, now);
        } else if (what === 'remove') {
          wanted.delete(key);
          schedule.remove(key);
        } else if (what === 'begin') {
          const check = schedule.begin(now);
          if (check === undefined) continue;
          assert.ok(wanted.has(check.key));
          assert.ok(!running.includes(check));
          running.push(check);
        } else if (what === 'end') {
          const check = running.shift();
          if (check !== undefined) schedule.end(check, now);
        }
      }
      for (const check of running) schedule.end(check, now);
      const began = new Set<string>();
      for (let time = 0; time < 100; time += 1) {
        now += 100;
        for (let next = schedule.begin(now); next !== undefined; next = schedule.begin(now)) {
          began.add(next.key);
          schedule.end(next, now);
        }
      }
      assert.deepEqual([...began].sort(), [...wanted].sort());
    }),
  );
});
