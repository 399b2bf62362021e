import assert from 'node:assert/strict';
import { test } from 'node:test';
import { castsFor, turnsFor } from '../src/measure/turns.ts';

test('two alternate, and each begins every other round', () => {
  assert.deepEqual(turnsFor(['weir', 'haproxy'], 3), [
    ['weir', 'haproxy'],
    ['haproxy', 'weir'],
    ['weir', 'haproxy'],
  ]);
});

test('of three everybody has one turn a round, and each begins as often as the others', () => {
  const rounds = turnsFor(['a', 'b', 'c'], 6);
  for (const round of rounds) assert.deepEqual([...round].sort(), ['a', 'b', 'c']);
  assert.deepEqual(
    rounds.map(([first]) => first),
    ['a', 'b', 'c', 'a', 'b', 'c'],
  );
});

test('those who are started together play two rounds, and the last cast what is left', () => {
  assert.deepEqual(castsFor(5), [2, 2, 1]);
  assert.deepEqual(castsFor(10), [2, 2, 2, 2, 2]);
});
