import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ACTIVE, counterRow, createCounterBlock, ROWS_PER_BLOCK } from '../../src/metering/counters.ts';
import { SlotRegistry } from '../../src/metering/slot-registry.ts';

test('adds up the open connections of all running workers in all counter blocks', () => {
  const registry = new SlotRegistry();
  const workers = [1, 2].map((id) => {
    const blocks = [createCounterBlock()];
    registry.addWorker(id, blocks);
    return blocks;
  });
  const assign = (name: string): number => {
    const { index, grows } = registry.assign({ service: name, tenant: 'shop', namespace: 'shop', name });
    if (grows) for (const blocks of workers) blocks.push(createCounterBlock());
    return index;
  };
  const open = (worker: number, slot: number, count: number): void => {
    counterRow(workers[worker] ?? [], slot)[ACTIVE] = count;
  };
  const first = assign('first');
  let last = first;
  for (let index = 0; index < ROWS_PER_BLOCK; index += 1) last = assign(`s${index}`);
  assert.equal(registry.activeConnections(), 0);
  open(0, first, 3);
  open(1, first, 4);
  open(1, last, 50);
  assert.equal(registry.activeConnections(), 57);
  registry.removeWorker(2);
  assert.equal(registry.activeConnections(), 3);
});
