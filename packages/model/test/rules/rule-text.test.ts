import assert from 'node:assert/strict';
import { test } from 'node:test';
import { metricText } from '@weir/model';

test('a figure has three digits and the largest prefix whose number is at least 1 when rounded', () => {
  const texts = [0, 999, 999.9, 1_000, 999_499, 999_600, 1_400_000_000, 2e12, 1e15, 1e18, 1.5e18].map((value) =>
    metricText('trafficPerMonth', value),
  );
  assert.deepEqual(texts, [
    '0 B',
    '999 B',
    '1 kB',
    '1 kB',
    '999 kB',
    '1 MB',
    '1.4 GB',
    '2 TB',
    '1 PB',
    '1000 PB',
    '1500 PB',
  ]);
});
