import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { exitStatusFor } from '../src/command-line.ts';
import { errorMessage, Secret, UsageError, WeirError } from '../src/index.ts';

test('WeirError carries its code, its cause and the name of its class', () => {
  const cause = new Error('refused');
  const error = new WeirError<'AWAY' | 'WRONG'>('AWAY', 'the store is away', { cause });
  assert.equal(error.code, 'AWAY');
  assert.equal(error.cause, cause);
  assert.equal(new UsageError('unknown flag').name, 'UsageError');
});

test('errorMessage joins the messages of an error and its causes on one line without repetition', () => {
  const root = new Error('connect ECONNREFUSED 127.0.0.1:6379');
  const middle = new Error('cannot reach Redis\n  at all', { cause: root });
  const outer = new Error('publish failed: connect ECONNREFUSED 127.0.0.1:6379', { cause: middle });
  assert.equal(errorMessage(outer), 'publish failed: connect ECONNREFUSED 127.0.0.1:6379: cannot reach Redis at all');
});

test('errorMessage formats any thrown value', () => {
  assert.equal(errorMessage('text'), 'text');
  assert.equal(errorMessage(undefined), 'unknown error');
  assert.equal(errorMessage(null), 'unknown error');
  assert.equal(errorMessage(7), '7');
  assert.equal(errorMessage(Symbol('odd')), 'Symbol(odd)');
  assert.equal(errorMessage({ message: 'from another realm' }), 'from another realm');
  assert.equal(errorMessage({ code: 404 }), '{"code":404}');
  assert.equal(errorMessage({ count: 1n }), 'unknown error');
  assert.equal(errorMessage(Object.assign(new Error(), { code: 'ECONNRESET' })), 'ECONNRESET');
  assert.equal(errorMessage(new TypeError()), 'TypeError');
});

test('errorMessage lists the errors of an AggregateError without a message', () => {
  const attempts = new AggregateError([
    new Error('connect ECONNREFUSED ::1:80'),
    new Error('connect ECONNREFUSED 127.0.0.1:80'),
  ]);
  assert.equal(errorMessage(attempts), 'connect ECONNREFUSED ::1:80, connect ECONNREFUSED 127.0.0.1:80');
});

test('errorMessage limits cyclic causes and long texts', () => {
  const error = new Error('round');
  error.cause = error;
  assert.equal(errorMessage(error), 'round');
  assert.equal(errorMessage('x'.repeat(10_000)).length, 2_000);
});

test('errorMessage replaces control characters', () => {
  assert.equal(errorMessage(new Error('peer said \u001b[2Jhello\u0000')), 'peer said [2Jhello');
});

test('exitStatusFor returns 2 for a usage error and 1 for any other error', () => {
  assert.deepEqual(exitStatusFor(new UsageError('unknown flag --x')), { code: 2, message: 'unknown flag --x' });
  assert.deepEqual(exitStatusFor(new Error('away')), { code: 1, message: 'away' });
});

test('Secret prints [redacted] except through reveal', () => {
  const secret = new Secret('hunter2');
  assert.equal(secret.reveal(), 'hunter2');
  const shown = [
    `${secret}`,
    JSON.stringify({ secret }),
    inspect({ secret }),
    inspect(secret, { showHidden: true, depth: 9 }),
  ];
  for (const text of shown) {
    assert.match(text, /\[redacted\]/);
    assert.doesNotMatch(text, /hunter2/);
  }
});
