import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SECOND_WINDOW_CELLS, SecondWindow, unitsInSecond } from '../../src/limits/second-window.ts';

const MS = 1_000_000n;
const SECOND = 1_000n * MS;
const SLOT = 10n * MS;
const WORKERS = 3;

/** The windows of several workers over the same cells. The workers act one after another. */
function sharedWindows(): { cells: Int32Array; workers: SecondWindow[] } {
  const cells = new Int32Array(new SharedArrayBuffer(SECOND_WINDOW_CELLS * Int32Array.BYTES_PER_ELEMENT));
  return { cells, workers: Array.from({ length: WORKERS }, () => new SecondWindow(cells)) };
}

const gapNs = fc.oneof(
  fc.constant(0n),
  fc.bigInt({ min: 0n, max: 30n * MS }),
  fc.bigInt({ min: 0n, max: 1_100n * MS }),
  fc.bigInt({ min: 0n, max: 3_600n * SECOND }),
);
const attempts = fc.array(fc.record({ worker: fc.nat(WORKERS - 1), gapNs, count: fc.integer({ min: 1, max: 4 }) }), {
  maxLength: 120,
});
const anyStart = fc.bigInt({ min: 0n, max: 40_000_000n * SECOND });

test('admits a unit if and only if the last second and the rest of its first slot have less than the limit', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), anyStart, attempts, (limit, start, steps) => {
      const { cells, workers } = sharedWindows();
      const taken: bigint[] = [];
      const takenAfter = (from: bigint): number => taken.filter((time) => time > from).length;
      let now = start;
      for (const { worker, gapNs: gap, count } of steps) {
        now += gap;
        for (let unit = 0; unit < count; unit += 1) {
          const inSecond = takenAfter(now - SECOND);
          const inSecondAndSlot = takenAfter(now - SECOND - SLOT);
          const isTaken = (workers[worker] as SecondWindow).tryTake(limit, now);
          if (isTaken) taken.push(now);
          assert.ok(isTaken ? inSecond < limit : inSecondAndSlot >= limit, `${inSecond} of ${limit}`);
        }
        const units = unitsInSecond(cells, now);
        assert.ok(units >= takenAfter(now - SECOND) && units <= takenAfter(now - SECOND - SLOT));
      }
    }),
  );
});

test('a worker that read the clock late counts its unit as if it had read the latest time that any worker has read', () => {
  const lateNs = fc.oneof(
    fc.bigInt({ min: 0n, max: SECOND / 2n }),
    fc.bigInt({ min: SECOND / 2n, max: 5n * SECOND }),
    fc.bigInt({ min: 0n, max: 59n * SECOND }),
  );
  const lateAttempts = fc.array(fc.record({ worker: fc.nat(WORKERS - 1), gapNs, lateNs }), { maxLength: 120 });
  fc.assert(
    fc.property(lateAttempts, fc.integer({ min: 1, max: 8 }), (steps, limit) => {
      const { workers } = sharedWindows();
      const taken: bigint[] = [];
      let now = 100n * SECOND;
      let latest = 0n;
      for (const { worker, gapNs: gap, lateNs: late } of steps) {
        now += gap;
        const read = now - late;
        if (read > latest) latest = read;
        if ((workers[worker] as SecondWindow).tryTake(limit, read)) taken.push(latest);
        assert.ok(taken.filter((time) => time > latest - SECOND).length <= limit);
      }
    }),
    { numRuns: 300 },
  );
});

test('a limit that is always used admits 1 % less than its rate', () => {
  const { workers } = sharedWindows();
  let taken = 0;
  for (let ms = 0n; ms < 10_100n; ms += 1n) {
    for (const worker of workers) if (worker.tryTake(200, 5n * SECOND + ms * MS)) taken += 1;
  }
  assert.equal(taken, 2_000);
});

test('rounds a share to a whole number, of which the least is 1, and admits nothing at 0', () => {
  for (const [limit, admitted] of [
    [0, 0],
    [0.01, 1],
    [1.4, 1],
    [2.5, 3],
    [7, 7],
  ] as const) {
    const [window] = sharedWindows().workers;
    let taken = 0;
    for (let attempt = 0; attempt < 10; attempt += 1) if (window?.tryTake(limit, 7n * SECOND)) taken += 1;
    assert.equal(taken, admitted, `${limit}`);
  }
});

test('giveBack makes room for exactly one further unit', () => {
  const { cells, workers } = sharedWindows();
  const [first, second] = workers as [SecondWindow, SecondWindow];
  const now = 7n * SECOND;
  assert.ok(first.tryTake(2, now) && second.tryTake(2, now));
  first.giveBack();
  assert.equal(unitsInSecond(cells, now), 1);
  assert.equal(second.tryTake(2, now), true);
  assert.equal(first.tryTake(2, now), false);
});

test('a window that is first used within a minute before the number of the slots wraps admits its limit in each second', () => {
  const { cells, workers } = sharedWindows();
  const [worker] = workers as [SecondWindow];
  const wrapsAt = 2n ** 32n * SLOT;
  let admitted = 0;
  for (let now = wrapsAt - 5n * SECOND; now < wrapsAt + 5n * SECOND; now += SLOT) {
    if (worker.tryTake(10, now)) admitted += 1;
    const units = unitsInSecond(cells, now);
    assert.ok(units >= 1 && units <= 10, `${units} in the last second`);
  }
  assert.ok(admitted >= 95 && admitted <= 101, `${admitted} in 10 s`);
});
