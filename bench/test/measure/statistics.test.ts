import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { median, pairwiseRatios, quartilesOf } from '../../src/measure/statistics.ts';

describe('statistics', () => {
  test('the median of an odd number of values is the middle one, whatever their order', () => {
    assert.equal(median([9, 1, 5]), 5);
    assert.equal(median([10, 9, 100]), 10);
  });

  test('the median of an even number of values lies between the two in the middle', () => {
    assert.equal(median([4, 1, 3, 2]), 2.5);
  });

  test('the spread says lowest, quartiles and highest, and leaves the values as they are', () => {
    const values = [5, 1, 4, 2, 3];
    assert.deepEqual(quartilesOf(values), { lowest: 1, lowerQuartile: 2, median: 3, upperQuartile: 4, highest: 5 });
    assert.deepEqual(values, [5, 1, 4, 2, 3]);
  });

  test('quartiles between two values are interpolated', () => {
    const { lowerQuartile, upperQuartile } = quartilesOf([1, 2, 3, 4]);
    assert.equal(lowerQuartile, 1.75);
    assert.equal(upperQuartile, 3.25);
  });

  test('one value is its own spread', () => {
    assert.deepEqual(quartilesOf([7]), { lowest: 7, lowerQuartile: 7, median: 7, upperQuartile: 7, highest: 7 });
  });

  test('ratios are taken pair by pair, not of the medians', () => {
    assert.deepEqual(pairwiseRatios([2, 9, 4], [1, 3, 8]), [2, 3, 0.5]);
  });

  test('pairs that are not complete are refused, and so is nothing at all', () => {
    assert.throws(() => pairwiseRatios([1, 2], [1]), /2 values, 1 references/);
    assert.throws(() => median([]), /no values/);
  });
});
