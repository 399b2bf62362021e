import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { planFinalizer } from '../../src/status/cleanup-finalizer.ts';

const SERVED = { type: 'LoadBalancer', deleting: false, isOurs: false, isServed: true, isWanted: true };

describe('the finalizer for tools that wait for a load balancer to be cleaned up', () => {
  test('is put on what is served, once, and only where it is wanted', () => {
    assert.equal(planFinalizer(SERVED), 'add');
    assert.equal(planFinalizer({ ...SERVED, isOurs: true }), undefined);
    assert.equal(planFinalizer({ ...SERVED, isWanted: false }), undefined);
    assert.equal(planFinalizer({ ...SERVED, isServed: false }), undefined);
  });

  test('is not put on what is being deleted or is no load balancer any more, which the table is about to follow', () => {
    assert.equal(planFinalizer({ ...SERVED, deleting: true }), undefined);
    assert.equal(planFinalizer({ ...SERVED, type: 'ClusterIP' }), undefined);
  });

  test('stays while ports are still open, and is taken off with the last of them', () => {
    const deleting = { ...SERVED, deleting: true, isOurs: true };
    assert.equal(planFinalizer(deleting), undefined);
    assert.equal(planFinalizer({ ...deleting, isServed: false }), 'remove');
    assert.equal(planFinalizer({ ...deleting, isServed: false, type: 'ClusterIP' }), 'remove');
  });

  test('is taken off by whoever does not want it any more, and never that of others', () => {
    assert.equal(planFinalizer({ ...SERVED, isOurs: true, isWanted: false }), 'remove');
    assert.equal(planFinalizer({ ...SERVED, isOurs: false, isServed: false, isWanted: false }), undefined);
  });
});
