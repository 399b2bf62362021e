import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rotatedOrders, roundsPerStart } from '../../src/comparison/rounds.ts';

test('alternates two subjects', () => {
  assert.deepEqual(rotatedOrders(['weir', 'haproxy'], 3), [
    ['weir', 'haproxy'],
    ['haproxy', 'weir'],
    ['weir', 'haproxy'],
  ]);
});

test('measures each of three subjects once a round, with each first equally often', () => {
  const rounds = rotatedOrders(['a', 'b', 'c'], 6);
  for (const round of rounds) assert.deepEqual([...round].sort(), ['a', 'b', 'c']);
  assert.deepEqual(
    rounds.map(([first]) => first),
    ['a', 'b', 'c', 'a', 'b', 'c'],
  );
});

test('restarts subjects after two rounds, with the remainder at the end', () => {
  assert.deepEqual(roundsPerStart(5), [2, 2, 1]);
  assert.deepEqual(roundsPerStart(10), [2, 2, 2, 2, 2]);
});
