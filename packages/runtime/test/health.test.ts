import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Health } from '../src/index.ts';

test('reports live and ready without checks or with healthy checks', () => {
  const health = new Health();
  health.add('store', 'ready', () => undefined);
  assert.deepEqual(health.report(), { live: true, ready: true, reasons: [] });
});

test('reports live but not ready if a ready check fails', () => {
  const health = new Health();
  health.add('store', 'ready', () => 'away since 12:00');
  assert.deepEqual(health.report(), {
    live: true,
    ready: false,
    reasons: [{ check: 'store', affects: 'ready', reason: 'away since 12:00' }],
  });
});

test('reports not ready if a live check fails', () => {
  const health = new Health();
  health.add('loop', 'live', () => 'stuck');
  assert.equal(health.report().live, false);
  assert.equal(health.report().ready, false);
});

test('counts a check that throws as failed', () => {
  const health = new Health();
  health.add('loop', 'live', () => {
    throw new Error('no such loop');
  });
  assert.deepEqual(health.report().reasons, [{ check: 'loop', affects: 'live', reason: 'no such loop' }]);
});

test('removes checks, and refuses a second check with the same name', () => {
  const health = new Health();
  const remove = health.add('worker', 'ready', () => 'starting');
  assert.throws(() => health.add('worker', 'ready', () => undefined), /"worker" already exists/);
  remove();
  assert.equal(health.report().ready, true);
  health.add('worker', 'ready', () => undefined);
});
