import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Heartbeat } from '@weir/model';
import { foldableIncarnations } from '../../src/usage/usage-reconciler.ts';

const DAY = 24 * 3_600_000;

function heartbeat(node: string, life: number, startedAt: number): Heartbeat {
  return {
    node,
    life,
    startedAt,
    version: '0',
    draining: false,
    addresses: [],
    applied: null,
    cutoffSequence: 0,
    listeners: [],
    workers: 1,
    connections: 0,
  };
}

test('accounts are closed below the lives that have served for a day', () => {
  assert.deepEqual(foldableIncarnations([heartbeat('a', 5, 0)], DAY), [{ node: 'a', life: 4 }]);
  assert.deepEqual(foldableIncarnations([heartbeat('a', 5, 1)], DAY), []);
  assert.deepEqual(foldableIncarnations([heartbeat('a', 1, 0)], DAY), []);
});

test('a life that still drains keeps its account, and a young one beside it those of before', () => {
  assert.deepEqual(foldableIncarnations([heartbeat('a', 7, 0), heartbeat('a', 5, 0)], DAY), [{ node: 'a', life: 4 }]);
  assert.deepEqual(foldableIncarnations([heartbeat('a', 7, DAY), heartbeat('a', 5, 0)], DAY), []);
});

test('a life that is not understood closes no account: when it began is not known', () => {
  const stranger = { ...heartbeat('a', 7, 0), unreadable: 'of another version' };
  assert.deepEqual(foldableIncarnations([stranger], DAY), []);
  assert.deepEqual(foldableIncarnations([stranger, heartbeat('a', 5, 0)], DAY), []);
});

test('a node that is not heard keeps all of its accounts', () => {
  assert.deepEqual(foldableIncarnations([], DAY), []);
});
