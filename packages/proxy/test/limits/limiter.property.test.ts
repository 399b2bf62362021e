import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { configureLimiter, Limiter } from '../../src/limits/limiter.ts';
import {
  createLimiterStateMemory,
  HELLOS,
  LimiterState,
  NEW_CONNECTIONS,
  REQUESTS,
} from '../../src/limits/limiter-state.ts';
import { unitsInSecond } from '../../src/limits/second-window.ts';

const WORKERS = 3;
const ROW = 5;
const NONE = Number.POSITIVE_INFINITY;
const UNLIMITED = {
  connections: NONE,
  newConnectionsPerSecond: NONE,
  inBitsPerSecond: NONE,
  outBitsPerSecond: NONE,
  requestsPerSecond: NONE,
};

function sharedLimiter(limits: Partial<typeof UNLIMITED>): { state: LimiterState; workers: Limiter[] } {
  const memory = createLimiterStateMemory(WORKERS);
  const state = new LimiterState(memory);
  configureLimiter(state, ROW, { limits: { ...UNLIMITED, ...limits }, now: 0n });
  const workers = Array.from(
    { length: WORKERS },
    (_, workerSlot) => new Limiter(new LimiterState(memory), { row: ROW, workerSlot }),
  );
  return { state, workers };
}

const action = fc.record({
  worker: fc.nat(WORKERS - 1),
  kind: fc.constantFrom('open', 'open', 'open', 'close', 'dies'),
});

test('workers together never exceed the limit, and connections of a dead worker are freed', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 80 }), fc.nat(6), (actions, connections) => {
      const { state, workers } = sharedLimiter({ connections });
      const open = workers.map(() => 0);
      const sum = (): number => open.reduce((all, each) => all + each, 0);
      for (const { worker, kind } of actions) {
        const limiter = workers[worker] as Limiter;
        const openBefore = open[worker] as number;
        if (kind === 'open') {
          const isOpen = limiter.tryOpen();
          // The workers act one after another here, so a connection below the limit is never refused.
          assert.equal(isOpen, sum() < connections);
          if (isOpen) open[worker] = openBefore + 1;
        } else if (kind === 'close' && openBefore > 0) {
          limiter.close();
          open[worker] = openBefore - 1;
        } else if (kind === 'dies') {
          state.clearWorker(worker);
          open[worker] = 0;
        }
        assert.equal(state.openCount(ROW), sum());
        assert.ok(sum() <= connections);
      }
    }),
  );
});

test('workers together open new connections at most at the rate; the connections of 0.35 s, or 7 connections, may come at once', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1_000 }),
      fc.array(fc.record({ worker: fc.nat(WORKERS - 1), afterMs: fc.nat(20) }), { maxLength: 100 }),
      (rate, attempts) => {
        const { workers } = sharedLimiter({ newConnectionsPerSecond: rate });
        let now = 1_000_000_000_000n;
        const start = now;
        let taken = 0;
        for (const { worker, afterMs } of attempts) {
          now += BigInt(afterMs) * 1_000_000n;
          if ((workers[worker] as Limiter).tryTake(NEW_CONNECTIONS, () => now)) taken += 1;
        }
        const burst = Math.max(Math.min(rate, 7), rate * 0.35);
        const seconds = Number(now - start) / 1e9;
        assert.ok(taken <= burst + rate * seconds + 1e-6, `${taken} in ${seconds} s at ${rate}`);
        assert.ok(taken >= Math.min(attempts.length, Math.floor(burst)));
      },
    ),
  );
});

test('above 10,000 per second, a worker takes the units of 0.1 ms together, and all workers keep to the rate', () => {
  const { state, workers } = sharedLimiter({ requestsPerSecond: 100_000 });
  const now = 5_000_000_000n;
  const take = (worker: number): boolean => (workers[worker] as Limiter).tryTake(REQUESTS, () => now);
  assert.equal(take(0), true);
  assert.equal(unitsInSecond(state.windowCells(ROW, REQUESTS), now), 10);
  let taken = 1;
  for (let attempt = 0; attempt < 60_000; attempt += 1) if (take(attempt % WORKERS)) taken += 1;
  // 35 % of the units of a second may be taken at once. A worker that the machine delays forgets some units.
  assert.ok(taken <= 35_000 && taken > 30_000, `${taken}`);
  (workers[0] as Limiter).giveBack(REQUESTS);
  assert.equal(take(0), true);
  assert.equal(take(0), false);
});

test('units that were taken together are forgotten when they are old', (context) => {
  const clock = context.mock.method(performance, 'now', () => 1_000);
  const { state, workers } = sharedLimiter({ requestsPerSecond: 100_000 });
  const [limiter] = workers as [Limiter];
  const now = 5_000_000_000n;
  for (let unit = 0; unit < 10; unit += 1) limiter.tryTake(REQUESTS, () => now);
  const units = (): number => unitsInSecond(state.windowCells(ROW, REQUESTS), now);
  assert.equal(units(), 10);
  limiter.tryTake(REQUESTS, () => now);
  assert.equal(units(), 20);
  clock.mock.mockImplementation(() => 1_010);
  limiter.tryTake(REQUESTS, () => now);
  assert.equal(units(), 30);
});

test('a limit of 0 refuses every connection, and no limit refuses none', () => {
  const none = sharedLimiter({ connections: 0, newConnectionsPerSecond: 0 }).workers[0] as Limiter;
  assert.equal(none.tryOpen(), false);
  assert.equal(
    none.tryTake(NEW_CONNECTIONS, () => 1n),
    false,
  );
  const all = sharedLimiter({}).workers[0] as Limiter;
  assert.equal(all.tryOpen(), true);
  assert.equal(
    all.tryTake(NEW_CONNECTIONS, () => 1n),
    true,
  );
});

test('a change of the rate keeps the debt in bytes', () => {
  const { state, workers } = sharedLimiter({ inBitsPerSecond: 8_000 });
  const limiter = workers[0] as Limiter;
  const now = 10_000_000_000n;
  assert.equal(limiter.charge('in', 1_050, now), now + 1_000_000_000n);
  configureLimiter(state, ROW, { limits: { ...UNLIMITED, inBitsPerSecond: 16_000 }, now });
  assert.equal(limiter.paidUntil('in'), now + 500_000_000n);
});

test('a share that is raised gives no burst for the time when it was small', () => {
  const { state, workers } = sharedLimiter({ inBitsPerSecond: 8_000 });
  const limiter = workers[0] as Limiter;
  const now = 10_000_000_000n;
  configureLimiter(state, ROW, { limits: { ...UNLIMITED, inBitsPerSecond: 8_000_000 }, now });
  // 50 ms of 8,000 bit/s are 50 bytes. Their credit is 50 µs of 8,000,000 bit/s.
  assert.equal(limiter.charge('in', 50, now), now);
});

test('ClientHellos have the rate of new connections, and are counted separately from them', () => {
  const { workers } = sharedLimiter({ newConnectionsPerSecond: 7 });
  const [limiter] = workers as [Limiter];
  const takenAt = (rate: typeof HELLOS | typeof NEW_CONNECTIONS, now: bigint): number =>
    Array.from({ length: 50 }, () => limiter.tryTake(rate, () => now)).filter(Boolean).length;
  const now = 5_000_000_000n;
  assert.deepEqual([takenAt(HELLOS, now), takenAt(NEW_CONNECTIONS, now)], [7, 7]);
  assert.equal(takenAt(HELLOS, now + 990_000_000n), 0);
  assert.equal(takenAt(HELLOS, now + 1_010_000_000n), 7);
});
