import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rotatedOrders, roundsPerStart } from '../../src/l4/rounds.ts';

test('two alternate, and each begins every other round', () => {
  assert.deepEqual(rotatedOrders(['weir', 'haproxy'], 3), [
    ['weir', 'haproxy'],
    ['haproxy', 'weir'],
    ['weir', 'haproxy'],
  ]);
});

test('of three everybody has one turn a round, and each begins as often as the others', () => {
  const rounds = rotatedOrders(['a', 'b', 'c'], 6);
  for (const round of rounds) assert.deepEqual([...round].sort(), ['a', 'b', 'c']);
  assert.deepEqual(
    rounds.map(([first]) => first),
    ['a', 'b', 'c', 'a', 'b', 'c'],
  );
});

test('those who are started together play two rounds, and the last cast what is left', () => {
  assert.deepEqual(roundsPerStart(5), [2, 2, 1]);
  assert.deepEqual(roundsPerStart(10), [2, 2, 2, 2, 2]);
});
