import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatDuration, parseDuration } from '@weir/model';

test('parses a number with a unit, and several from the largest unit to the smallest', () => {
  const durations = {
    '0s': 0,
    '500ms': 500,
    '5s': 5000,
    '10m': 600_000,
    '1h30m': 5_400_000,
    '7d': 604_800_000,
    '1m0s1ms': 60_001,
  };
  for (const [text, ms] of Object.entries(durations)) assert.equal(parseDuration(text), ms, text);
});

test('returns undefined for a text that is not a duration', () => {
  for (const text of ['', '5', '5 s', '-5s', '1.5s', '5S', '5s10m', 's', '5s5s', '5ms5m', '99999999999999999d']) {
    assert.equal(parseDuration(text), undefined, text);
  }
});

test('formats a duration so that parsing returns the same number', () => {
  for (const ms of [0, 1, 999, 1000, 90_000, 86_400_000, 90_061_001])
    assert.equal(parseDuration(formatDuration(ms)), ms);
  assert.equal(formatDuration(90_000), '1m30s');
});
