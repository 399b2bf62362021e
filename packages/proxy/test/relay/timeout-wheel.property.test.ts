import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TimeoutWheel, type WheelEntry } from '../../src/relay/timeout-wheel.ts';

interface Entry extends WheelEntry {
  deadline: number;
  expiredAt: number | undefined;
}

const SLOTS = 8;
/**
 * The life of an entry: `at` is the tick at which the entry is added, `timeout` its timeout in ticks, and `activity`
 * the ticks at which the entry is active.
 */
const lifetime = fc.record({
  at: fc.nat(20),
  timeout: fc.integer({ min: 1, max: 30 }),
  activity: fc.array(fc.nat(60), { maxLength: 4 }),
});

test('an entry expires at its last deadline, even if the deadline is far away or was moved often', () => {
  fc.assert(
    fc.property(fc.array(lifetime, { maxLength: 10 }), (lifetimes) => {
      const wheel = new TimeoutWheel<Entry>(SLOTS);
      const entries = new Map<number, Entry>();
      for (let tick = 0; tick < 150; tick += 1) {
        lifetimes.forEach(({ at, timeout, activity }, index) => {
          const entry = entries.get(index);
          if (at === tick) {
            const added = { deadline: tick + timeout, wheelSlot: 0, wheelIndex: -1, expiredAt: undefined };
            entries.set(index, added);
            wheel.add(added);
          } else if (entry !== undefined && entry.expiredAt === undefined && activity.includes(tick)) {
            entry.deadline = tick + timeout;
          }
        });
        wheel.tick();
        for (const entry of takenFrom(wheel)) entry.expiredAt = wheel.now;
      }
      lifetimes.forEach(({ at, timeout, activity }, index) => {
        assert.equal(entries.get(index)?.expiredAt, lastDeadline(at, timeout, activity));
      });
    }),
  );
});

test('a removed entry never expires, and an earlier deadline counts after `advance`', () => {
  const wheel = new TimeoutWheel<WheelEntry & { name: string }>(SLOTS);
  const removed = { name: 'removed', deadline: 2, wheelSlot: 0, wheelIndex: -1 };
  const earlier = { name: 'earlier', deadline: 100, wheelSlot: 0, wheelIndex: -1 };
  wheel.add(removed);
  wheel.add(earlier);
  wheel.remove(removed);
  earlier.deadline = 3;
  wheel.advance(earlier);
  for (let tick = 0; tick < 3; tick += 1) wheel.tick();
  assert.deepEqual(
    takenFrom(wheel).map(({ name }) => name),
    ['earlier'],
  );
});

test('a due entry that is not taken at its tick is taken later, unless its deadline has moved', () => {
  const wheel = new TimeoutWheel<WheelEntry & { deadline: number }>(SLOTS);
  const [late, moved] = [1, 1].map((deadline) => ({ deadline, wheelSlot: 0, wheelIndex: -1 }));
  assert.ok(late !== undefined && moved !== undefined);
  wheel.add(late);
  wheel.add(moved);
  wheel.tick();
  wheel.tick();
  moved.deadline = 3;
  assert.deepEqual(takenFrom(wheel), [late]);
  wheel.tick();
  assert.deepEqual(takenFrom(wheel), [moved]);
});

test('a sweep that is far behind ends, and takes no entry too early', () => {
  const wheel = new TimeoutWheel<WheelEntry>(SLOTS);
  const [due, far] = [1, 100].map((deadline) => ({ deadline, wheelSlot: 0, wheelIndex: -1 }));
  assert.ok(due !== undefined && far !== undefined);
  for (const entry of [far, due, { ...far }, { ...far }]) wheel.add(entry);
  for (let tick = 0; tick < 50; tick += 1) {
    wheel.tick();
    wheel.advance(far);
  }
  assert.deepEqual(takenFrom(wheel), [due]);
  for (; wheel.now < 100; wheel.tick()) assert.deepEqual(takenFrom(wheel), []);
  assert.equal(takenFrom(wheel).length, 3);
});

function takenFrom<T extends WheelEntry>(wheel: TimeoutWheel<T>): T[] {
  const taken: T[] = [];
  for (let entry = wheel.takeDue(); entry !== undefined; entry = wheel.takeDue()) taken.push(entry);
  return taken;
}

function lastDeadline(at: number, timeout: number, activity: readonly number[]): number {
  let deadline = at + timeout;
  // The test applies the activity of a tick before `wheel.tick()`, so only activity before the deadline moves the
  // deadline.
  for (const tick of [...activity].sort((a, b) => a - b)) if (tick > at && tick < deadline) deadline = tick + timeout;
  return deadline;
}
