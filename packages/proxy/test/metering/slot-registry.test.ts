import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ACTIVE,
  counterRow,
  countOutcome,
  countRequestRefusal,
  createCounterBlock,
  ROWS_PER_BLOCK,
} from '../../src/metering/counters.ts';
import { type SlotOwner, SlotRegistry } from '../../src/metering/slot-registry.ts';

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

test('reads refusals by reason over all workers, blocks and owners, and counts requests and connections of a reason together', () => {
  const registry = new SlotRegistry();
  const workers = [1, 2].map((id) => {
    const blocks = [createCounterBlock(), createCounterBlock()];
    registry.addWorker(id, blocks);
    return blocks;
  });
  const ownerOf = (name: string): SlotOwner => ({ service: name, tenant: 'shop', namespace: 'shop', name });
  const rowOf = (worker: number, slot: number): Float64Array => counterRow(workers[worker] ?? [], slot);
  const refusedOf = (name: string): unknown =>
    registry.readings().find(({ service }) => service === name)?.counters.refused;
  for (let index = 0; index < ROWS_PER_BLOCK; index += 1) registry.assign(ownerOf(`s${index}`));
  const slot = registry.assign(ownerOf('web')).index;
  assert.equal(refusedOf('web'), undefined);
  countOutcome(rowOf(0, slot), 'connect-failed');
  countRequestRefusal(rowOf(1, slot), 'connect-failed');
  countOutcome(rowOf(1, slot), 'rate-limit');
  countOutcome(rowOf(1, slot), 'completed');
  const refused = { 'connect-failed': 2, 'rate-limit': 1 };
  assert.deepEqual(refusedOf('web'), refused);
  registry.removeWorker(1);
  assert.deepEqual(refusedOf('web'), refused, 'the counts of a worker that has ended stay');
  registry.release(ownerOf('web'), 1);
  registry.freeReleased(1, () => true);
  assert.equal(registry.assign(ownerOf('next')).index, slot);
  assert.equal(refusedOf('next'), undefined, 'the next owner of the slot begins at 0');
  countOutcome(rowOf(1, slot), 'cut-off');
  assert.deepEqual(refusedOf('next'), { 'cut-off': 1 });
  assert.deepEqual(registry.startIncarnation().find(({ service }) => service === 'next')?.counters.refused, {
    'cut-off': 1,
  });
  assert.equal(refusedOf('next'), undefined);
});
