import assert from 'node:assert/strict';
import { test } from 'node:test';
import { demandPerSecond } from '@weir/model';
import fc from 'fast-check';

/** Samples that are 100 ms apart: those at both ends of a second, and those between. */
const SAMPLES_OF_A_SECOND = 11;

test('a demand is the mean of the last second', () => {
  const counts = [2, 1, 3, 2, 2, 1, 3, 2, 2, 2, 2];
  assert.equal(demandOf(counts), 20);
  assert.equal(demandOf([50, ...counts]), 20);
});

test('a demand that moves to another proxy or appears is noticed within one sample', () => {
  const steady = Array<number>(11).fill(20);
  assert.equal(demandOf([...steady, 0]), 0);
  assert.equal(demandOf([...steady, 60]), 600);
  assert.equal(demandOf([0, 0, 0, 0, 20]), 200);
  const few = Array<number>(11).fill(4);
  assert.equal(demandOf([...few, 0, 0]), 32, 'may be chance');
  assert.equal(demandOf([...few, 0, 0, 0, 0]), 0);
});

test('a demand is 0 before the second sample, and if nothing was counted', () => {
  assert.equal(demandOf([7]), 0);
  assert.equal(demandOf([7, 0, 0]), 0);
});

test('a demand is never higher than the highest rate between two samples, nor lower than the lowest', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(1_000), { minLength: 2, maxLength: 30 }), (counts) => {
      const perSecond = demandOf(counts);
      const rates = counts.slice(1).map((count) => count * 10);
      assert.ok(perSecond >= Math.min(...rates) - 1e-9 && perSecond <= Math.max(...rates) + 1e-9);
    }),
  );
});

/** Returns the demand after samples of the last second that are 100 ms apart. The counter has increased by these counts. */
function demandOf(counts: readonly number[]): number {
  let counter = 0;
  const samples = counts.map((count, index) => {
    counter += count;
    return { atMs: index * 100, counter };
  });
  return demandPerSecond(samples.slice(-SAMPLES_OF_A_SECOND), (sample) => sample.counter);
}
