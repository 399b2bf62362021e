import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findingFor, redis } from '../fixtures/doctor-facts.ts';

test('RedisReachable fails for a replica and warns while Redis loads its data', () => {
  const replica = findingFor('RedisReachable', { redis: redis({ role: 'replica' }) });
  assert.deepEqual([replica.severity, replica.subject], ['error', 'Redis 10.0.0.5:6379']);
  assert.match(replica.message, /set the Redis URL to the primary/);
  assert.equal(findingFor('RedisReachable', { redis: redis({ isLoading: true }) }).severity, 'warning');
});

test('RedisVersion requires 7.0', () => {
  const verdicts = ['6.2.14', '7.0.0', '8.2.1', undefined].map(
    (version) => findingFor('RedisVersion', { redis: redis({ version }) }).severity,
  );
  assert.deepEqual(verdicts, ['error', 'ok', 'ok', 'error']);
});

test('RedisEviction requires noeviction', () => {
  const evicts = findingFor('RedisEviction', { redis: redis({ evictionPolicy: 'allkeys-lru' }) });
  assert.equal(evicts.severity, 'error');
  assert.match(evicts.message, /^maxmemory-policy is allkeys-lru.*set it to noeviction$/);
  assert.equal(findingFor('RedisEviction', { redis: redis({ evictionPolicy: undefined }) }).severity, 'warning');
});

test('RedisMemory warns above 80 % of maxmemory, and reports a full Redis', () => {
  const findingWith = (used: number, max: number) =>
    findingFor('RedisMemory', { redis: redis({ memory: { used, max } }) });
  assert.equal(findingWith(80, 100).severity, 'ok');
  assert.equal(findingWith(81, 100).severity, 'warning');
  assert.equal(findingWith(1_000, 0).severity, 'ok');
  const full = findingWith(2 ** 26 + 1, 2 ** 26);
  assert.equal(full.severity, 'error');
  assert.match(full.message, /^Redis uses 65 MiB of its maxmemory of 64 MiB, so changes and usage wait/);
});

test('RedisPersistence recommends appendonly and reports failed writes', () => {
  const messageFor = (change: Parameters<typeof redis>[0]): string =>
    findingFor('RedisPersistence', { redis: redis(change) }).message;
  assert.match(messageFor({ appendOnly: false }), /^Redis writes snapshots only.*set appendonly yes$/);
  assert.match(
    messageFor({ appendOnly: false, snapshots: false }),
    /^Redis writes neither an append-only log nor snapshots/,
  );
  assert.match(messageFor({ appendOnly: false, snapshots: undefined }), /no append-only log, and perhaps no snapshots/);
  const broken = findingFor('RedisPersistence', { redis: redis({ isFailingToPersist: true }) });
  assert.equal(broken.severity, 'error');
});
