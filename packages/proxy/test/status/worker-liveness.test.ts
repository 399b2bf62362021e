import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '@weir/runtime';
import { createWorkerLiveness } from '../../src/status/proxy-status.ts';

test('reports a problem only after a minute without a running worker', async () => {
  const clock = new ManualClock();
  let workers = 0;
  const liveness = createWorkerLiveness(() => workers, clock);
  const after = async (seconds: number): Promise<string | undefined> => {
    for (let each = 0; each < seconds; each += 1) {
      await clock.advance(1_000);
      liveness.check();
    }
    return liveness.problem;
  };
  assert.equal(await after(59), undefined);
  assert.equal(await after(1), 'no worker has been up for 60 s');
  workers = 1;
  assert.equal(await after(1), undefined);
  workers = 0;
  assert.equal(await after(59), undefined);
  assert.equal(await after(2), 'no worker has been up for 61 s');
});
