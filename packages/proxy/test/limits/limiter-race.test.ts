import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { configureLimiter, Limiter } from '../../src/limits/limiter.ts';
import { createLimiterStateMemory, LimiterState } from '../../src/limits/limiter-state.ts';

const WORKERS = 4;
const ROW = 5;
const MAX_OPEN = 7;
const NONE = Number.POSITIVE_INFINITY;

/** Opens and closes as fast as it can, and counts for itself how many stand open at the same time. */
const RACING_THREAD_SOURCE = `
import { workerData, parentPort } from 'node:worker_threads';
const { Limiter } = await import(workerData.budget);
const { LimiterState } = await import(workerData.sheet);
const budget = new Limiter(new LimiterState(workerData.memory), { row: ${ROW}, column: workerData.column });
const [STANDING, HIGHEST, TAKEN, NEW] = [0, 1, 2, 3];
const tally = new Int32Array(workerData.tally);
const mine = [];
for (let round = 0; round < 20000; round += 1) {
  if (budget.tryOpen()) {
    const standing = Atomics.add(tally, STANDING, 1) + 1;
    for (let highest = Atomics.load(tally, HIGHEST); standing > highest; highest = Atomics.load(tally, HIGHEST)) {
      Atomics.compareExchange(tally, HIGHEST, highest, standing);
    }
    Atomics.add(tally, TAKEN, 1);
    mine.push(1);
  }
  if (budget.tryTakeNew(() => 10_000_000_000n)) Atomics.add(tally, NEW, 1);
  if (mine.length > round % 3) {
    mine.pop();
    Atomics.sub(tally, STANDING, 1);
    budget.close();
  }
}
parentPort.postMessage(mine.length);`;

test('threads that race for the last place never have more than the limit, nor more of a rate', async () => {
  const memory = createLimiterStateMemory(WORKERS);
  const sheet = new LimiterState(memory);
  const limits = {
    connections: MAX_OPEN,
    newConnectionsPerSecond: 1_000,
    inBitsPerSecond: NONE,
    outBitsPerSecond: NONE,
  };
  configureLimiter(sheet, ROW, { limits, now: 0n });
  const tally = new SharedArrayBuffer(16);
  const left = await Promise.all(
    Array.from({ length: WORKERS }, async (_, column) => {
      const workerData = {
        memory,
        tally,
        column,
        budget: new URL('../../src/limits/limiter.ts', import.meta.url).href,
        sheet: new URL('../../src/limits/limiter-state.ts', import.meta.url).href,
      };
      const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(RACING_THREAD_SOURCE)}`), {
        workerData,
      });
      const [open] = (await once(worker, 'message')) as [number];
      return open;
    }),
  );
  const [standing = 0, highest = 0, taken = 0, news = 0] = new Int32Array(tally);
  assert.ok(highest <= MAX_OPEN && taken > 1_000, `${highest} at a time, ${taken} in all`);
  assert.equal(news, 1_000);
  assert.equal(sheet.openCount(ROW), standing);
  assert.equal(
    standing,
    left.reduce((sum, each) => sum + each, 0),
  );
  assert.equal(new Limiter(sheet, { row: ROW, column: 0 }).openCount, standing);
});
