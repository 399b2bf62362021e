import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '@weir/testkit';
import { DELAY_QUANTILES, startEventLoopDelayMonitor } from '../../src/worker/event-loop-delay.ts';

const STALL_MS = 150;
const MAX_INDEX = DELAY_QUANTILES.indexOf(1);

test('reports a stall for at least 30 seconds, whenever in the window it happened, and not forever', async (context) => {
  for (const before of [0, 28]) {
    const cells = new Float64Array(DELAY_QUANTILES.length);
    const monitor = startEventLoopDelayMonitor(cells);
    context.after(() => monitor.close());
    const isReported = (): boolean => (cells[MAX_INDEX] as number) >= 0.1;
    for (let tick = 0; tick < before; tick += 1) monitor.tick();
    await eventually(() => {
      stall();
      monitor.tick();
      assert.ok(isReported());
    });
    for (let tick = 0; tick < 29; tick += 1) {
      monitor.tick();
      assert.ok(isReported(), `${tick + 1} seconds after the stall, which began after ${before} seconds`);
    }
    for (let tick = 0; tick < 60; tick += 1) monitor.tick();
    assert.ok(!isReported());
  }
});

/** Blocks the thread for `STALL_MS`. */
function stall(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS);
}
