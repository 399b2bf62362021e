import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { planFinalizer } from '../../src/status/cleanup-finalizer.ts';

const SERVED = { type: 'LoadBalancer', deleting: false, isOurs: false, isServed: true, isWanted: true };

describe('the cleanup finalizer', () => {
  test('is added once to a served Service, and only if wanted', () => {
    assert.equal(planFinalizer(SERVED), 'add');
    assert.equal(planFinalizer({ ...SERVED, isOurs: true }), undefined);
    assert.equal(planFinalizer({ ...SERVED, isWanted: false }), undefined);
    assert.equal(planFinalizer({ ...SERVED, isServed: false }), undefined);
  });

  test('is not added to a Service that is being deleted or is not a load balancer any more', () => {
    assert.equal(planFinalizer({ ...SERVED, deleting: true }), undefined);
    assert.equal(planFinalizer({ ...SERVED, type: 'ClusterIP' }), undefined);
  });

  test('stays while the Service is served, and is removed afterwards', () => {
    const deleting = { ...SERVED, deleting: true, isOurs: true };
    assert.equal(planFinalizer(deleting), undefined);
    assert.equal(planFinalizer({ ...deleting, isServed: false }), 'remove');
    assert.equal(planFinalizer({ ...deleting, isServed: false, type: 'ClusterIP' }), 'remove');
  });

  test('is removed by the fleet that added it if unwanted, and never removed if another manager added it', () => {
    assert.equal(planFinalizer({ ...SERVED, isOurs: true, isWanted: false }), 'remove');
    assert.equal(planFinalizer({ ...SERVED, isOurs: false, isServed: false, isWanted: false }), undefined);
  });
});
