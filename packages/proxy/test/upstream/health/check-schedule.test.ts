import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CheckSchedule, type RunningCheck, type ScheduledCheck } from '../../../src/upstream/health/check-schedule.ts';

/** Deterministic, and different for each seed. */
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

/** Runs the schedule for `forMs`; a check of a key is over after what `tookMs` says, or never. */
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

function mostInAnySecond(began: readonly Began[]): number {
  let most = 0;
  let from = 0;
  began.forEach(({ at }, index) => {
    while ((began[from] as Began).at <= at - 1_000) from += 1;
    most = Math.max(most, index - from + 1);
  });
  return most;
}

function add(schedule: CheckSchedule, count: number, over: Partial<ScheduledCheck> = {}): void {
  const check = { group: 'shop', intervalMs: 1_000, cost: 1, ...over };
  for (let index = 0; index < count; index += 1) schedule.add({ ...check, key: `${check.group}-${index}` }, 0);
}

test('a thousand endpoints that want a check each second get 500 in any second, each its share, and it is told', () => {
  const schedule = new CheckSchedule(randomOf(1), 0);
  add(schedule, 1_000);
  const began = run(schedule, { forMs: 10_000 });
  const most = mostInAnySecond(began);
  assert.ok(most <= 500 && most >= 470, `${most}`);
  const counts = Map.groupBy(began, ({ key }) => key);
  assert.equal(counts.size, 1_000);
  for (const { length } of counts.values()) assert.ok(length >= 3 && length <= 6, `${length}`);
  assert.ok(schedule.stretched > 500);
});

test('checks that cost more are fewer, and leave room for another tenant’s', () => {
  const schedule = new CheckSchedule(randomOf(5), 0);
  add(schedule, 1_000, { group: 'costly', cost: 5 });
  add(schedule, 10, { group: 'modest' });
  const began = run(schedule, { forMs: 10_000 });
  const [costly = [], modest = []] = ['costly', 'modest'].map((group) =>
    began.filter(({ key }) => key.startsWith(group)),
  );
  const most = mostInAnySecond(costly);
  assert.ok(most <= 100 && most >= 90, `${most}`);
  assert.ok(modest.length >= 90, `${modest.length}`);
});

test('two tenants who want more than there is get as much of it each, whatever their checks cost', () => {
  const schedule = new CheckSchedule(randomOf(6), 0);
  add(schedule, 1_000, { group: 'costly', cost: 5 });
  add(schedule, 1_000, { group: 'modest' });
  const began = run(schedule, { forMs: 10_000 }).filter(({ at }) => at > 2_000);
  const costly = 5 * began.filter(({ key }) => key.startsWith('costly')).length;
  const modest = began.length - costly / 5;
  assert.ok(Math.abs(costly - modest) < 0.1 * modest, `${costly} and ${modest}`);
});

test('where there is room each check begins within a tenth of its interval, spread from the start', () => {
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
  assert.equal(schedule.stretched, 0);
});

test('a tenant with too many endpoints does not keep another’s from being checked in time', () => {
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

test('endpoints that hang hold a bounded number of checks, and leave room for another tenant’s', () => {
  const schedule = new CheckSchedule(randomOf(4), 0);
  add(schedule, 2_000, { group: 'hanging' });
  add(schedule, 10, { group: 'modest' });
  const tookMs = (key: string): number => (key.startsWith('hanging') ? Number.POSITIVE_INFINITY : 1);
  const began = run(schedule, { forMs: 10_000, tookMs });
  assert.ok(began.filter(({ key }) => key.startsWith('hanging')).length <= 256);
  assert.ok(began.filter(({ key }) => key.startsWith('modest')).length >= 85);
});

test('for any comings and goings no check is lost, none runs twice at once, and none begins after it was removed', () => {
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
