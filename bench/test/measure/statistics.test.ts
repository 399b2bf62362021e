import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { median, pairwiseRatios, summarize, summarizeTail } from '../../src/measure/statistics.ts';

describe('statistics', () => {
  test('takes the middle value as the median of an odd number of values', () => {
    assert.equal(median([9, 1, 5]), 5);
    assert.equal(median([10, 9, 100]), 10);
  });

  test('takes the mean of the two middle values as the median of an even number of values', () => {
    assert.equal(median([4, 1, 3, 2]), 2.5);
  });

  test('summarizes values without changing their order', () => {
    const values = [5, 1, 4, 2, 3];
    assert.deepEqual(summarize(values), {
      count: 5,
      lowest: 1,
      lowerQuartile: 2,
      median: 3,
      upperQuartile: 4,
      highest: 5,
    });
    assert.deepEqual(values, [5, 1, 4, 2, 3]);
  });

  test('interpolates quartiles between two values', () => {
    const { lowerQuartile, upperQuartile } = summarize([1, 2, 3, 4]);
    assert.equal(lowerQuartile, 1.75);
    assert.equal(upperQuartile, 3.25);
  });

  test('adds the 99th percentile where a target limits it', () => {
    const values = Array.from({ length: 101 }, (_, index) => index);
    assert.equal(summarizeTail(values).p99, 99);
  });

  test('summarizes a single value', () => {
    assert.deepEqual(summarize([7]), {
      count: 1,
      lowest: 7,
      lowerQuartile: 7,
      median: 7,
      upperQuartile: 7,
      highest: 7,
    });
  });

  test('divides pair by pair', () => {
    assert.deepEqual(pairwiseRatios([2, 9, 4], [1, 3, 8]), [2, 3, 0.5]);
  });

  test('rejects incomplete pairs and empty lists', () => {
    assert.throws(() => pairwiseRatios([1, 2], [1]), /2 values, 1 references/);
    assert.throws(() => median([]), /no values/);
  });
});
