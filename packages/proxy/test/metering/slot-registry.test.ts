import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ACTIVE, counterRow, ROWS_PER_BLOCK } from '../../src/metering/counters.ts';
import { SlotRegistry } from '../../src/metering/slot-registry.ts';

test('open connections are those of all workers in all slabs, less those that ended with their worker', () => {
  const book = new SlotRegistry();
  const workers = [1, 2].map((id) => {
    const slabs = [book.createBlock()];
    book.addWorker(id, slabs);
    return slabs;
  });
  const assign = (name: string): number => {
    const { index, grows } = book.assign({ service: name, tenant: 'shop', namespace: 'shop', name });
    if (grows) for (const slabs of workers) slabs.push(book.createBlock());
    return index;
  };
  const open = (worker: number, slot: number, count: number): void => {
    counterRow(workers[worker] ?? [], slot)[ACTIVE] = count;
  };
  const first = assign('first');
  let last = first;
  for (let index = 0; index < ROWS_PER_BLOCK; index += 1) last = assign(`s${index}`);
  assert.equal(book.activeConnections(), 0);
  open(0, first, 3);
  open(1, first, 4);
  open(1, last, 50);
  assert.equal(book.activeConnections(), 57);
  book.removeWorker(2);
  assert.equal(book.activeConnections(), 3);
});
