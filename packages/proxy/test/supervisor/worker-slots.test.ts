import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SlotWorker, WorkerSlots } from '../../src/supervisor/worker-slots.ts';

test('WorkerSlots keeps the totals of a slot when its worker is replaced', () => {
  const slots = new WorkerSlots(2);
  slots.occupy(workerOf(1, 10, 1.5));
  slots.occupy(workerOf(2, 20, 2));
  slots.vacate(1);
  assert.deepEqual(
    slots
      .view()
      .map(({ worker: slot, connections, active, cpuSeconds, ends }) => [slot, connections, active, cpuSeconds, ends]),
    [
      [0, 10, 0, 1.5, 1],
      [1, 20, 1, 2, 0],
    ],
  );
  slots.occupy(workerOf(3, 5, 0.5));
  assert.equal(slots.workerIdAt(0), 3);
  assert.equal(slots.view()[0]?.connections, 15);
  assert.equal(slots.view()[0]?.cpuSeconds, 2);
  assert.equal(slots.view()[0]?.droppedDatagrams, 6);
});

function workerOf(id: number, connections: number, cpuSeconds: number): SlotWorker {
  return {
    id,
    counts: { connections, active: 1 },
    stats: { heapBytes: 1, utilization: 0, delaySeconds: [], cpuSeconds, droppedDatagrams: 3 },
  };
}
