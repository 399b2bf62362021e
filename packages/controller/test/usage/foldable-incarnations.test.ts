import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Heartbeat } from '@weir/model';
import { foldableIncarnations } from '../../src/usage/usage-reconciler.ts';
import { heartbeat as heartbeatOf } from '../fixtures/controller-harness.ts';

const DAY = 24 * 3_600_000;

const heartbeat = (node: string, life: number, startedAt: number): Heartbeat =>
  heartbeatOf(node, [], { life, startedAt });

test('folds the incarnations before those that have run for a day', () => {
  assert.deepEqual(foldableIncarnations([heartbeat('a', 5, 0)], DAY), [{ node: 'a', life: 4 }]);
  assert.deepEqual(foldableIncarnations([heartbeat('a', 5, 1)], DAY), []);
  assert.deepEqual(foldableIncarnations([heartbeat('a', 1, 0)], DAY), []);
});

test('folds nothing from the oldest live incarnation on, and nothing while a new incarnation is younger than a day', () => {
  assert.deepEqual(foldableIncarnations([heartbeat('a', 7, 0), heartbeat('a', 5, 0)], DAY), [{ node: 'a', life: 4 }]);
  assert.deepEqual(foldableIncarnations([heartbeat('a', 7, DAY), heartbeat('a', 5, 0)], DAY), []);
});

test('folds nothing on a node with an unknown-version proxy, whose start is unknown', () => {
  const unknownVersion = { ...heartbeat('a', 7, 0), unreadable: 'of another version' };
  assert.deepEqual(foldableIncarnations([unknownVersion], DAY), []);
  assert.deepEqual(foldableIncarnations([unknownVersion, heartbeat('a', 5, 0)], DAY), []);
});

test('folds nothing on a node without heartbeats', () => {
  assert.deepEqual(foldableIncarnations([], DAY), []);
});
