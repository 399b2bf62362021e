import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type EjectionState,
  type EndpointHealth,
  evaluatePortHealth,
  INITIAL_CHECK_STATE,
  INITIAL_EJECTION_STATE,
  isEjected,
  recordCheckResult,
  recordConnectFailures,
  recordConnectSuccess,
  recordFailedAnswers,
  recordGoodAnswer,
} from '@weir/model';

const TIMING = { healthyThreshold: 2, unhealthyThreshold: 3 };

function checks(answers: string): boolean {
  let state = INITIAL_CHECK_STATE;
  for (const answer of answers) state = recordCheckResult(state, answer === '+', TIMING);
  return state.passes;
}

test('a check fails after the threshold of bad results in a row, and passes after the threshold of good ones', () => {
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

test('a check confirms its endpoint while it passes and the last result was good', () => {
  let state = INITIAL_CHECK_STATE;
  const proven = [...'+--+---++'].map((answer) => {
    state = recordCheckResult(state, answer === '+', TIMING);
    return state.isConfirmed;
  });
  assert.equal(INITIAL_CHECK_STATE.isConfirmed, false);
  assert.deepEqual(proven, [true, false, false, true, false, false, false, false, true]);
});

test('ejects an endpoint for ten seconds at its third failed connect in a row', () => {
  const twice = recordConnectFailures(INITIAL_EJECTION_STATE, 2, 0);
  assert.equal(isEjected(twice, 0), false);
  assert.equal(isEjected(recordConnectFailures(recordConnectSuccess(twice, 1), 2, 2), 2), false);
  const ejected = recordConnectFailures(twice, 1, 100);
  assert.deepEqual(
    [isEjected(ejected, 100), isEjected(ejected, 10_099), isEjected(ejected, 10_100)],
    [true, true, false],
  );
});

test('prolongs each ejection up to five minutes, and ignores failures during an ejection', () => {
  let state = recordConnectFailures(INITIAL_EJECTION_STATE, 3, 0);
  const lengths: number[] = [];
  for (let time = 0; time < 40; time += 1) {
    lengths.push(state.ejectedUntil - state.ejectedAt);
    assert.equal(recordConnectFailures(state, 5, state.ejectedUntil - 1).ejectedUntil, state.ejectedUntil);
    state = recordConnectFailures(state, 1, state.ejectedUntil);
  }
  assert.deepEqual(lengths.slice(0, 3), [10_000, 20_000, 30_000]);
  assert.deepEqual(new Set(lengths.slice(29)), new Set([300_000]));
});

test('resets the number of ejections after ten minutes without one', () => {
  const second = recordConnectFailures(recordConnectFailures(INITIAL_EJECTION_STATE, 3, 0), 1, 10_000);
  const soon = recordConnectFailures(recordConnectSuccess(second, 31_000), 3, 600_000);
  const late = recordConnectFailures(recordConnectSuccess(second, 31_000), 3, 640_000);
  assert.deepEqual([soon.ejectedUntil - soon.ejectedAt, late.ejectedUntil - late.ejectedAt], [30_000, 10_000]);
});

test('ends an ejection after a successful connect', () => {
  assert.equal(isEjected(recordConnectSuccess(recordConnectFailures(INITIAL_EJECTION_STATE, 3, 0), 50), 50), false);
});

test('ejects an endpoint with failed answers until a good answer, and longer each time', () => {
  const first = recordFailedAnswers(INITIAL_EJECTION_STATE, 0);
  assert.equal(first.ejectedUntil, 10_000);
  assert.equal(recordFailedAnswers(first, 9_999), first);
  assert.equal(recordFailedAnswers(first, 10_000).ejectedUntil, 30_000);
  assert.equal(isEjected(recordConnectSuccess(first, 50), 50), true);
  assert.equal(isEjected(recordGoodAnswer(first, 50), 50), false);
});

test('a good answer does not end an ejection because of failed connects', () => {
  const ejected = recordConnectFailures(INITIAL_EJECTION_STATE, 3, 0);
  assert.equal(recordGoodAnswer(ejected, 1), ejected);
});

/**
 * Returns the indices of the excluded endpoints. Each letter is one endpoint: `+` works, `x` fails its check, `e` is ejected, `X` fails
 * its check and is ejected. Endpoints further left were ejected earlier.
 */
function unusedOf(letters: string): string {
  const endpoints = [...letters].map((letter, index): EndpointHealth => {
    const ejection: EjectionState = recordConnectFailures(INITIAL_EJECTION_STATE, 'eX'.includes(letter) ? 3 : 0, index);
    return { key: `${index}`, passes: !'xX'.includes(letter), isConfirmed: !'xX'.includes(letter), ejection };
  });
  return evaluatePortHealth(endpoints, 100).excluded.join('');
}

test('excludes endpoints that fail or are ejected', () => {
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
