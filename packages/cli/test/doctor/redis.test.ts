import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findingFor, redis } from '../fixtures/doctor-facts.ts';

test('RedisReachable: a replica is an error, one that loads a warning', () => {
  const replica = findingFor('RedisReachable', { redis: redis({ role: 'replica' }) });
  assert.deepEqual([replica.severity, replica.subject], ['error', 'Redis 10.0.0.5:6379']);
  assert.match(replica.message, /point the Redis URL at the primary/);
  assert.equal(findingFor('RedisReachable', { redis: redis({ isLoading: true }) }).severity, 'warning');
});

test('RedisVersion: before 7.0 Weir refuses it', () => {
  const verdicts = ['6.2.14', '7.0.0', '8.2.1', undefined].map(
    (version) => findingFor('RedisVersion', { redis: redis({ version }) }).severity,
  );
  assert.deepEqual(verdicts, ['error', 'ok', 'ok', 'error']);
});

test('RedisEviction: anything but noeviction loses what is stored', () => {
  const evicts = findingFor('RedisEviction', { redis: redis({ evictionPolicy: 'allkeys-lru' }) });
  assert.equal(evicts.severity, 'error');
  assert.match(evicts.message, /^has maxmemory-policy allkeys-lru.*set it to noeviction$/);
  assert.equal(findingFor('RedisEviction', { redis: redis({ evictionPolicy: undefined }) }).severity, 'warning');
});

test('RedisPersistence: a log is asked for, and a disk that takes writes', () => {
  const of = (change: Parameters<typeof redis>[0]): string =>
    findingFor('RedisPersistence', { redis: redis(change) }).message;
  assert.match(of({ appendOnly: false }), /^writes snapshots only.*set appendonly yes$/);
  assert.match(of({ appendOnly: false, snapshots: false }), /^keeps no log, nor snapshots/);
  assert.match(of({ appendOnly: false, snapshots: undefined }), /does not let us see whether/);
  const broken = findingFor('RedisPersistence', { redis: redis({ isFailingToPersist: true }) });
  assert.equal(broken.severity, 'error');
});
