import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Deadlined, TimeoutWheel } from '../../src/relay/timeout-wheel.ts';

interface Entry extends Deadlined {
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
      const wheel = new TimeoutWheel<Entry>(SLOTS, (entry) => {
        entry.expiredAt = wheel.now;
      });
      const entries = new Map<number, Entry>();
      for (let tick = 0; tick < 150; tick += 1) {
        lives.forEach(({ at, timeout, activity }, index) => {
          const entry = entries.get(index);
          if (at === tick) {
            const added = { deadline: tick + timeout, wheelSlot: 0, wheelAt: -1, expiredAt: undefined };
            entries.set(index, added);
            wheel.add(added);
          } else if (entry !== undefined && entry.expiredAt === undefined && activity.includes(tick)) {
            entry.deadline = tick + timeout;
          }
        });
        wheel.tick();
      }
      lives.forEach(({ at, timeout, activity }, index) => {
        assert.equal(entries.get(index)?.expiredAt, lastDeadline(at, timeout, activity));
      });
    }),
  );
});

test('what was removed never expires, and a nearer deadline counts from when the wheel is told', () => {
  const expired: string[] = [];
  const wheel = new TimeoutWheel<Deadlined & { name: string }>(SLOTS, ({ name }) => expired.push(name));
  const removed = { name: 'removed', deadline: 2, wheelSlot: 0, wheelAt: -1 };
  const nearer = { name: 'nearer', deadline: 100, wheelSlot: 0, wheelAt: -1 };
  wheel.add(removed);
  wheel.add(nearer);
  wheel.remove(removed);
  nearer.deadline = 3;
  wheel.advance(nearer);
  for (let tick = 0; tick < 3; tick += 1) wheel.tick();
  assert.deepEqual(expired, ['nearer']);
});

function lastDeadline(at: number, timeout: number, activity: readonly number[]): number {
  let deadline = at + timeout;
  // Activity of a tick comes before the wheel turns to the next.
  for (const tick of [...activity].sort((a, b) => a - b)) if (tick > at && tick < deadline) deadline = tick + timeout;
  return deadline;
}
