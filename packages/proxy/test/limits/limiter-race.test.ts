import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { configureLimiter, Limiter, MAX_UNSEEN_OPENS } from '../../src/limits/limiter.ts';
import { createLimiterStateMemory, LimiterState } from '../../src/limits/limiter-state.ts';
import { SECOND_WINDOW_CELLS } from '../../src/limits/second-window.ts';

const WORKERS = 4;
const ROW = 5;
const NONE = Number.POSITIVE_INFINITY;

/**
 * The program of each thread. Opens and closes connections as fast as possible, and records the highest number of
 * connections that all threads had open at the same time.
 */
const RACING_THREAD_SOURCE = `
import { workerData, parentPort } from 'node:worker_threads';
const { Limiter } = await import(workerData.limiterUrl);
const { LimiterState } = await import(workerData.limiterStateUrl);
const limiter = new Limiter(new LimiterState(workerData.memory), { row: ${ROW}, workerSlot: workerData.workerSlot });
const [OPEN, HIGHEST, OPENED, NEW] = [0, 1, 2, 3];
const counters = new Int32Array(workerData.counters);
let open = 0;
for (let round = 0; round < 20000; round += 1) {
  if (limiter.tryOpen()) {
    const now = Atomics.add(counters, OPEN, 1) + 1;
    for (let highest = Atomics.load(counters, HIGHEST); now > highest; highest = Atomics.load(counters, HIGHEST)) {
      Atomics.compareExchange(counters, HIGHEST, highest, now);
    }
    Atomics.add(counters, OPENED, 1);
    open += 1;
  }
  if (limiter.tryTake(0, () => 10_000_000_000n)) Atomics.add(counters, NEW, 1);
  // Lets the number of each thread rise above its part of the limit, then closes all connections of the thread.
  while (open > 0 && open > workerData.maxOpen / ${WORKERS} + (round % 40) - 32) {
    open -= 1;
    Atomics.sub(counters, OPEN, 1);
    limiter.close();
  }
}
parentPort.postMessage(open);`;

for (const maxOpen of [7, WORKERS * MAX_UNSEEN_OPENS + 6])
  test(`threads that race for the last of ${maxOpen} connections never exceed the limit or the rate`, () =>
    race(maxOpen));

async function race(maxOpen: number): Promise<void> {
  const memory = createLimiterStateMemory(WORKERS);
  const state = new LimiterState(memory);
  const limits = {
    connections: maxOpen,
    newConnectionsPerSecond: 1_000,
    inBitsPerSecond: NONE,
    outBitsPerSecond: NONE,
    requestsPerSecond: NONE,
  };
  configureLimiter(state, ROW, { limits, now: 0n });
  const counters = new SharedArrayBuffer(16);
  const openByWorker = await Promise.all(
    Array.from({ length: WORKERS }, async (_, workerSlot) => {
      const workerData = {
        memory,
        counters,
        maxOpen,
        workerSlot,
        limiterUrl: new URL('../../src/limits/limiter.ts', import.meta.url).href,
        limiterStateUrl: new URL('../../src/limits/limiter-state.ts', import.meta.url).href,
      };
      const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(RACING_THREAD_SOURCE)}`), {
        workerData,
      });
      const [open] = (await once(worker, 'message')) as [number];
      return open;
    }),
  );
  const [open = 0, highest = 0, opened = 0, newTokens = 0] = new Int32Array(counters);
  assert.ok(highest <= maxOpen && opened > 1_000, `${highest} at a time, ${opened} in all`);
  // 35 % of the units of a second may be taken at once.
  assert.equal(newTokens, 350);
  assert.equal(state.openCount(ROW), open);
  assert.equal(
    open,
    openByWorker.reduce((sum, each) => sum + each, 0),
  );
  assert.equal(new Limiter(state, { row: ROW, workerSlot: 0 }).openCount, open);
}

const RATE = 500;
const ATTEMPTS = 60_000;
/** How far each attempt moves the clock of the next test. */
const STEP_NS = 20_000n;

/** Takes units as fast as possible. Records the time before and after each unit. Each attempt moves the clock that all threads share. */
const TAKING_THREAD_SOURCE = `
import { workerData, parentPort } from 'node:worker_threads';
const { SecondWindow } = await import(workerData.secondWindowUrl);
const clock = new BigInt64Array(workerData.clock);
const window = new SecondWindow(workerData.cells);
const times = [];
for (let attempt = 0; attempt < ${ATTEMPTS}; attempt += 1) {
  const before = Atomics.add(clock, 0, ${STEP_NS}n);
  if (window.tryTake(${RATE}, before)) times.push(Number(before), Number(Atomics.load(clock, 0)));
}
parentPort.postMessage(times);`;

test('threads that race never take more than the limit in any second, while slots begin and end', async () => {
  const cells = new Int32Array(new SharedArrayBuffer(SECOND_WINDOW_CELLS * Int32Array.BYTES_PER_ELEMENT));
  const clock = new SharedArrayBuffer(8);
  const secondWindowUrl = new URL('../../src/limits/second-window.ts', import.meta.url).href;
  const timesByThread = await Promise.all(
    Array.from({ length: WORKERS }, async () => {
      const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(TAKING_THREAD_SOURCE)}`), {
        workerData: { cells, clock, secondWindowUrl },
      });
      const [times] = (await once(worker, 'message')) as [number[]];
      return times;
    }),
  );
  const taken = timesByThread.flatMap((times) =>
    Array.from({ length: times.length / 2 }, (_, index) => ({
      before: times[2 * index] as number,
      after: times[2 * index + 1] as number,
    })),
  );
  for (const { before } of taken) {
    const surelyTaken = taken.filter((unit) => unit.before >= before && unit.after < before + 1e9).length;
    assert.ok(surelyTaken <= RATE, `${surelyTaken} in the second after ${before}`);
  }
  const seconds = (WORKERS * ATTEMPTS * Number(STEP_NS)) / 1e9;
  assert.ok(taken.length >= 0.95 * RATE * Math.floor(seconds), `${taken.length} in ${seconds} s`);
});
