import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { StoreError } from '../../../src/errors.ts';
import { isProgrammingError, storeErrorFor } from '../../../src/redis/connection/redis-errors.ts';

describe('storeErrorFor', () => {
  const cases: readonly (readonly [text: string, code: string, message: RegExp])[] = [
    ['WRONGPASS invalid username-password pair or user is disabled.', 'REFUSED', /refuses the user name or password/],
    ['NOAUTH Authentication required.', 'REFUSED', /asks for a password/],
    ['NOPERM this user has no permissions to run the |set| command', 'REFUSED', /does not permit.*extend the ACL/],
    ["NOPERM ACL failure in script: can't run this command", 'REFUSED', /does not permit.*extend the ACL/],
    ["ERR The user executing the script can't run this command or subcommand", 'REFUSED', /extend the ACL/],
    ["OOM command not allowed when used memory > 'maxmemory'.", 'REFUSED', /out of memory; raise its maxmemory/],
    ['MISCONF Redis is configured to save RDB snapshots, but cannot.', 'REFUSED', /accepts no writes/],
    ['ERR DB index is out of range', 'REFUSED', /does not have the database/],
    ['ERR AUTH <password> called without any password configured', 'REFUSED', /has no password configured/],
    ['ERR unknown command', 'REFUSED', /failed: ERR unknown command/],
    ['WRONGTYPE Operation against a key holding the wrong kind of value', 'REFUSED', /failed: WRONGTYPE/],
    ['READONLY You cannot write against a read only replica.', 'AWAY', /is a replica; point the Redis URL/],
    ['MOVED 3999 10.0.0.1:6379', 'REFUSED', /one server of a cluster; use redis-cluster:/],
    ['NOREPLICAS Not enough good replicas to write.', 'AWAY', /failed: NOREPLICAS/],
    ['LOADING Redis is loading the dataset in memory', 'AWAY', /still loading/],
    ['MASTERDOWN Link with MASTER is down', 'AWAY', /failed: MASTERDOWN/],
    ['BUSY Redis is busy running a script.', 'AWAY', /failed: BUSY/],
    ['Connection is closed.', 'AWAY', /closed the connection/],
    ['Command timed out', 'AWAY', /has not responded in time/],
    ['Invalid array length. Please report this.', 'REFUSED', /does not speak the Redis protocol/],
    ['Something that nobody thought of', 'AWAY', /failed: Something/],
  ];

  test('maps error replies to AWAY or REFUSED with server and fix', () => {
    for (const [text, code, message] of cases) {
      const error = storeErrorFor(new Error(text), 'redis:6379');
      assert.equal(error.code, code, text);
      assert.match(error.message, message);
      assert.ok(error.message.startsWith('Redis at redis:6379 '));
      assert.equal(error.cause, undefined);
    }
  });

  test('maps network errors by their code', () => {
    for (const code of [
      'ECONNREFUSED',
      'ENOTFOUND',
      'EAI_AGAIN',
      'ETIMEDOUT',
      'EHOSTUNREACH',
      'ENETUNREACH',
      'ECONNRESET',
    ]) {
      const error = storeErrorFor(Object.assign(new Error(`connect ${code} 10.0.0.1:6379`), { code }), 'redis:6379');
      assert.equal(error.code, 'AWAY');
    }
  });

  test('returns a StoreError unchanged', () => {
    const error = new StoreError('GAP', 'a gap');
    assert.equal(storeErrorFor(error, 'redis:6379'), error);
  });

  test('isProgrammingError accepts bugs, but not parse errors of the client', () => {
    const mistakes = [new RangeError('no'), new TypeError('no'), new ReferenceError('no'), new SyntaxError('no')];
    for (const mistake of [...mistakes, new assert.AssertionError({ message: 'no' })]) {
      assert.equal(isProgrammingError(mistake), true, mistake.name);
    }
    assert.equal(isProgrammingError(new RangeError('Invalid array length. Please report this.')), false);
    assert.equal(isProgrammingError(new Error('Connection is closed.')), false);
    assert.equal(isProgrammingError('no error'), false);
  });
});
