import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Lease } from '../../src/limits/lease.ts';
import type { ResourceDemand } from '../../src/limits/lease-demand.ts';

const NAME = { owner: { kind: 'tenant', name: 'shop' }, resource: 'connections' } as const;
const LIMIT = 100;
const BUSY: ResourceDemand = { claim: { demand: 200, weight: 1, floor: 0, used: 0 }, used: 0 };
const NO_OTHERS = { share: LIMIT, others: [], rank: 0 };
const ONE_OTHER = { share: LIMIT, others: [BUSY.claim], rank: 0 };

/** Returns the share that the lease asks for. */
function wantedBy(lease: Lease): number {
  return lease.request({ now: 0, mayLower: true, applyShare: () => 0 }).wanted;
}

test('the same demand leads to another share after another member has joined', () => {
  const lease = new Lease(NAME, LIMIT);
  lease.apply(NO_OTHERS);
  lease.update(BUSY, false);
  lease.apply(ONE_OTHER);
  lease.update(BUSY, false);
  assert.equal(wantedBy(lease), LIMIT / 2);
});

test('the same demand leads to another share after the limit has changed', () => {
  const lease = new Lease(NAME, LIMIT);
  lease.update(BUSY, false);
  lease.limit = 2 * LIMIT;
  lease.update(BUSY, false);
  assert.equal(wantedBy(lease), 2 * LIMIT);
});

test('the same demand leads to a lower share after a request that was not allowed to lower the share', () => {
  const lease = new Lease(NAME, LIMIT);
  lease.apply(ONE_OTHER);
  lease.update(BUSY, false);
  assert.equal(lease.request({ now: 0, mayLower: false, applyShare: () => 0 }).wanted, LIMIT);
  lease.update(BUSY, false);
  assert.equal(wantedBy(lease), LIMIT / 2);
});

test('the same demand leads to a lower share when the proxy drains', () => {
  const lease = new Lease(NAME, LIMIT);
  const calm: ResourceDemand = { claim: { ...BUSY.claim, demand: 7 }, used: 7 };
  lease.update(calm, false);
  lease.update(calm, true);
  assert.equal(wantedBy(lease), 7);
});
