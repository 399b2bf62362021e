import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DemandWindow } from '@weir/model';
import fc from 'fast-check';

test('a demand is the mean of the last second', () => {
  const window = new DemandWindow();
  const counts = [2, 1, 3, 2, 2, 1, 3, 2, 2, 2, 2];
  assert.equal(addAll(window, counts), 20);
  assert.equal(addAll(new DemandWindow(), [50, ...counts]), 20);
});

test('a demand that moves to another proxy or appears is noticed within one sample', () => {
  const steady = Array<number>(11).fill(20);
  assert.equal(addAll(new DemandWindow(), [...steady, 0]), 0);
  assert.equal(addAll(new DemandWindow(), [...steady, 60]), 600);
  assert.equal(addAll(new DemandWindow(), [0, 0, 0, 0, 20]), 200);
  const few = Array<number>(11).fill(4);
  assert.equal(addAll(new DemandWindow(), [...few, 0, 0]), 32, 'may be chance');
  assert.equal(addAll(new DemandWindow(), [...few, 0, 0, 0, 0]), 0);
});

test('a demand is 0 before the second sample, and if nothing was counted', () => {
  assert.equal(addAll(new DemandWindow(), [7]), 0);
  assert.equal(addAll(new DemandWindow(), [7, 0, 0]), 0);
});

test('a demand is never higher than the highest rate between two samples, nor lower than the lowest', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(1_000), { minLength: 2, maxLength: 30 }), (counts) => {
      const perSecond = addAll(new DemandWindow(), counts);
      const rates = counts.slice(1).map((count) => count * 10);
      assert.ok(perSecond >= Math.min(...rates) - 1e-9 && perSecond <= Math.max(...rates) + 1e-9);
    }),
  );
});

/** Adds samples that are 100 ms apart, with these increases, and returns the last demand. */
function addAll(window: DemandWindow, counts: readonly number[]): number {
  let counter = 0;
  let demand = 0;
  for (const [index, count] of counts.entries()) {
    counter += count;
    demand = window.add(index * 100, counter);
  }
  return demand;
}
