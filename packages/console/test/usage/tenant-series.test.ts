import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seriesPeriodsFor } from '../../src/usage/tenant-series.ts';

const NOW = Date.parse('2028-03-01T00:30:15Z');

test('returns the minutes of the last hour', () => {
  const periods = seriesPeriodsFor(NOW, 'minute');
  assert.equal(periods.length, 60);
  assert.equal(periods.at(-1), '2028-03-01T00:30');
  assert.equal(periods[0], '2028-02-29T23:31');
});

test('returns the hours of the last two days', () => {
  const periods = seriesPeriodsFor(NOW, 'hour');
  assert.equal(periods.length, 48);
  assert.equal(periods[0], '2028-02-28T01');
});

test('returns 31 days across the end of a month', () => {
  const periods = seriesPeriodsFor(NOW, 'day');
  assert.equal(new Set(periods).size, 31);
  assert.equal(periods.at(-2), '2028-02-29');
});
