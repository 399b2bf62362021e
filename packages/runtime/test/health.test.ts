import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHealth } from '../src/index.ts';

test('without checks, and with checks that find nothing, a process is live and ready', () => {
  const health = createHealth();
  health.add('store', 'ready', () => undefined);
  assert.deepEqual(health.report(), { live: true, ready: true, reasons: [] });
});

test('a reason against ready leaves a process live', () => {
  const health = createHealth();
  health.add('store', 'ready', () => 'away since 12:00');
  assert.deepEqual(health.report(), {
    live: true,
    ready: false,
    reasons: [{ check: 'store', affects: 'ready', reason: 'away since 12:00' }],
  });
});

test('a process that is not live is not ready', () => {
  const health = createHealth();
  health.add('loop', 'live', () => 'stuck');
  assert.equal(health.report().live, false);
  assert.equal(health.report().ready, false);
});

test('a check that throws is a reason', () => {
  const health = createHealth();
  health.add('loop', 'live', () => {
    throw new Error('no such loop');
  });
  assert.deepEqual(health.report().reasons, [{ check: 'loop', affects: 'live', reason: 'no such loop' }]);
});

test('a check can be taken away, and its name given again, but not twice at once', () => {
  const health = createHealth();
  const remove = health.add('worker', 'ready', () => 'starting');
  assert.throws(() => health.add('worker', 'ready', () => undefined), /"worker" exists already/);
  remove();
  assert.equal(health.report().ready, true);
  health.add('worker', 'ready', () => undefined);
});
