import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  answered,
  connectSucceeded,
  connectsFailed,
  type EjectionState,
  type EndpointHealth,
  isEjected,
  judgePort,
  NEVER_FAILED,
  UNCHECKED,
} from '@weir/model';

const TIMING = { healthyThreshold: 2, unhealthyThreshold: 3 };

function checks(answers: string): boolean {
  let state = UNCHECKED;
  for (const answer of answers) state = answered(state, answer === '+', TIMING);
  return state.passes;
}

test('a check is failed by as many bad answers in a row as are asked for, and passed again by as many good ones', () => {
  assert.deepEqual(['', '--', '---', '--+--', '---+', '---++', '---+-+', '---++--', '---++---'].map(checks), [
    true,
    true,
    false,
    true,
    false,
    true,
    false,
    true,
    false,
  ]);
});

test('a check proves that its endpoint works while it is passed and the last answer was good', () => {
  let state = UNCHECKED;
  const proven = [...'+--+---++'].map((answer) => {
    state = answered(state, answer === '+', TIMING);
    return state.isProven;
  });
  assert.equal(UNCHECKED.isProven, false);
  assert.deepEqual(proven, [true, false, false, true, false, false, false, false, true]);
});

test('an endpoint is ejected at its third failed connect in a row, for ten seconds', () => {
  const twice = connectsFailed(NEVER_FAILED, 2, 0);
  assert.equal(isEjected(twice, 0), false);
  assert.equal(isEjected(connectsFailed(connectSucceeded(twice, 1), 2, 2), 2), false);
  const ejected = connectsFailed(twice, 1, 100);
  assert.deepEqual(
    [isEjected(ejected, 100), isEjected(ejected, 10_099), isEjected(ejected, 10_100)],
    [true, true, false],
  );
});

test('each ejection is longer than the one before, up to five minutes, and failures meanwhile add nothing', () => {
  let state = connectsFailed(NEVER_FAILED, 3, 0);
  const lengths: number[] = [];
  for (let time = 0; time < 40; time += 1) {
    lengths.push(state.until - state.since);
    assert.equal(connectsFailed(state, 5, state.until - 1).until, state.until);
    state = connectsFailed(state, 1, state.until);
  }
  assert.deepEqual(lengths.slice(0, 3), [10_000, 20_000, 30_000]);
  assert.deepEqual(new Set(lengths.slice(29)), new Set([300_000]));
});

test('ejections are forgotten after ten good minutes', () => {
  const second = connectsFailed(connectsFailed(NEVER_FAILED, 3, 0), 1, 10_000);
  const soon = connectsFailed(connectSucceeded(second, 31_000), 3, 600_000);
  const late = connectsFailed(connectSucceeded(second, 31_000), 3, 640_000);
  assert.deepEqual([soon.until - soon.since, late.until - late.since], [30_000, 10_000]);
});

test('a connect that succeeds ends an ejection', () => {
  assert.equal(isEjected(connectSucceeded(connectsFailed(NEVER_FAILED, 3, 0), 50), 50), false);
});

/** One endpoint per letter: `+` works, `x` fails its check, `e` is ejected (the earlier the further left), `X` is both. */
function unusedOf(letters: string): string {
  const endpoints = [...letters].map((letter, index): EndpointHealth => {
    const ejection: EjectionState = connectsFailed(NEVER_FAILED, 'eX'.includes(letter) ? 3 : 0, index);
    return { key: `${index}`, passes: !'xX'.includes(letter), isProven: !'xX'.includes(letter), ejection };
  });
  return judgePort(endpoints, 100).unused.join('');
}

test('which endpoints are left out', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['+', ''],
    ['e', ''],
    ['x', ''],
    ['+e', '1'],
    ['ee', '0'],
    ['eee', '0'],
    ['+ee', '1'],
    ['+++x', '3'],
    ['xxx+', '012'],
    ['xxxx', ''],
    ['xxee', '01'],
    ['x+++e', '04'],
    ['xXxX', '13'],
    ['eeee++', '012'],
  ];
  assert.deepEqual(
    rows.map(([letters]) => [letters, unusedOf(letters)]),
    rows,
  );
});
