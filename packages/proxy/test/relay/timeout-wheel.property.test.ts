import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TimeoutWheel, type WheelEntry } from '../../src/relay/timeout-wheel.ts';

interface Entry extends WheelEntry {
  deadline: number;
  expiredAt: number | undefined;
}

const SLOTS = 8;
/** When it is added, how long it may last, and when something happens on it. */
const life = fc.record({
  at: fc.nat(20),
  timeout: fc.integer({ min: 1, max: 30 }),
  activity: fc.array(fc.nat(60), { maxLength: 4 }),
});

test('an entry expires at the tick of its last deadline, however far away it is and however often it was put off', () => {
  fc.assert(
    fc.property(fc.array(life, { maxLength: 10 }), (lives) => {
      const wheel = new TimeoutWheel<Entry>(SLOTS);
      const entries = new Map<number, Entry>();
      for (let tick = 0; tick < 150; tick += 1) {
        lives.forEach(({ at, timeout, activity }, index) => {
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
      lives.forEach(({ at, timeout, activity }, index) => {
        assert.equal(entries.get(index)?.expiredAt, lastDeadline(at, timeout, activity));
      });
    }),
  );
});

test('what was removed never expires, and a nearer deadline counts from when the wheel is told', () => {
  const wheel = new TimeoutWheel<WheelEntry & { name: string }>(SLOTS);
  const removed = { name: 'removed', deadline: 2, wheelSlot: 0, wheelIndex: -1 };
  const nearer = { name: 'nearer', deadline: 100, wheelSlot: 0, wheelIndex: -1 };
  wheel.add(removed);
  wheel.add(nearer);
  wheel.remove(removed);
  nearer.deadline = 3;
  wheel.advance(nearer);
  for (let tick = 0; tick < 3; tick += 1) wheel.tick();
  assert.deepEqual(
    takenFrom(wheel).map(({ name }) => name),
    ['nearer'],
  );
});

test('what is due and not yet taken when time goes on is taken later, unless it was put off', () => {
  const wheel = new TimeoutWheel<WheelEntry & { deadline: number }>(SLOTS);
  const [late, putOff] = [1, 1].map((deadline) => ({ deadline, wheelSlot: 0, wheelIndex: -1 }));
  assert.ok(late !== undefined && putOff !== undefined);
  wheel.add(late);
  wheel.add(putOff);
  wheel.tick();
  wheel.tick();
  putOff.deadline = 3;
  assert.deepEqual(takenFrom(wheel), [late]);
  wheel.tick();
  assert.deepEqual(takenFrom(wheel), [putOff]);
});

test('however far the taking is behind, it ends, and nobody is taken too early', () => {
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
  // Activity of a tick comes before the wheel turns to the next.
  for (const tick of [...activity].sort((a, b) => a - b)) if (tick > at && tick < deadline) deadline = tick + timeout;
  return deadline;
}
