import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger, UsageError } from '@weir/runtime';
import { openRedisStore, rethrowRefusedAsUsage, StoreError } from '../src/index.ts';

test('rethrowRefusedAsUsage turns a refused Redis URL into a usage error', async () => {
  const opening = openRedisStore({ url: 'http://localhost', fleet: 'f', log: silentLogger() });
  await assert.rejects(opening.catch(rethrowRefusedAsUsage), (error) => {
    assert.ok(error instanceof UsageError);
    assert.match(error.message, /^the Redis URL ".*" .+; use redis:/);
    return true;
  });
});

test('rethrowRefusedAsUsage rethrows any other error unchanged', () => {
  for (const error of [new StoreError('AWAY', 'away'), new TypeError('a bug')]) {
    assert.throws(() => rethrowRefusedAsUsage(error), error);
  }
});
