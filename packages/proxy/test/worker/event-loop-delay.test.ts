import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '@weir/testkit';
import { DELAY_QUANTILES, startEventLoopDelayMonitor } from '../../src/worker/event-loop-delay.ts';

const STALL_MS = 150;
const MAX_INDEX = DELAY_QUANTILES.indexOf(1);

test('a stall is told for half a minute, whenever in that time it was, and not for ever', async (context) => {
  for (const before of [0, 28]) {
    const cells = new Float64Array(DELAY_QUANTILES.length);
    const watch = startEventLoopDelayMonitor(cells);
    context.after(() => watch.close());
    const told = (): boolean => (cells[MAX_INDEX] as number) >= 0.1;
    for (let tick = 0; tick < before; tick += 1) watch.tick();
    await eventually(() => {
      stall();
      watch.tick();
      assert.ok(told());
    });
    for (let tick = 0; tick < 29; tick += 1) {
      watch.tick();
      assert.ok(told(), `${tick + 1} seconds after it, begun after ${before}`);
    }
    for (let tick = 0; tick < 60; tick += 1) watch.tick();
    assert.ok(!told());
  }
});

/** As whatever keeps the thread. */
function stall(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STALL_MS);
}
