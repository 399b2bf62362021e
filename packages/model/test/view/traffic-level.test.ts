import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  NO_ALLOCATIONS,
  NO_NOTICES,
  type ServiceView,
  serviceViewsFor,
  trafficLevelOf,
  trafficMessage,
  translate,
  type UsageNotices,
  withNotices,
} from '@weir/model';
import { service, slice, snapshotOf } from '../fixtures/snapshot.ts';

/** Returns the view of a served Service. `more` replaces fields of the Service. */
function viewOf(more: Parameters<typeof service>[1] = {}, slices = [slice('a/web', ['10.0.0.1'])]): ServiceView {
  const one = { 'weir.dev/nodes': '1' };
  const snapshot = snapshotOf({ services: [service('a/web', { annotations: one, ...more })], slices });
  const { table } = translate(snapshot, NO_ALLOCATIONS);
  const previousAddresses = new Map([['uid-a-web', ['192.0.2.1']]]);
  const [view] = serviceViewsFor({
    table,
    heartbeats: [],
    suspensions: [],
    now: 0,
    previousAddresses,
    reachable: true,
  });
  return view ?? assert.fail();
}

const NOTICES: UsageNotices = {
  byTenant: new Map([['a', [{ reason: 'OverLimit', message: 'used up' }]]]),
  byService: new Map(),
};

function degraded(view: ServiceView): string {
  const told = withNotices(view, NOTICES).conditions.filter(({ type }) => type === 'Degraded');
  return told.map(({ reason, message }) => `${reason}: ${message}`).join('\n');
}

describe('a Service whose tenant has used up its month', () => {
  test('is Degraded, with reasons in order of severity', () => {
    assert.equal(degraded(viewOf()), 'OverLimit: used up');
    assert.match(degraded(viewOf({}, [])), /^NoReadyEndpoints: there is no endpoint, .*; used up$/);
    assert.match(degraded(viewOf({ externalTrafficPolicy: 'Local' })), /^OverLimit: used up; externalTrafficPolicy/);
  });

  test('keeps its view without an address or without a message', () => {
    const view = viewOf();
    assert.equal(withNotices({ ...view, addresses: [] }, NOTICES).conditions, view.conditions);
    assert.equal(withNotices(view, NO_NOTICES), view);
  });

  test('reaches the levels 80 % and 100 % of its limit', () => {
    const levels = [799, 800, 999, 1_000].map((bytes) => trafficLevelOf({ trafficPerMonth: 1_000 }, bytes));
    assert.deepEqual(levels, ['below', '80%', '80%', '100%']);
    assert.equal(trafficLevelOf({}, 1e15), 'below');
  });

  test('has a message with the limit, the effect on its Services, and the policy to ask for', () => {
    const tenant = { name: 'shop', policy: 'shops', limits: { trafficPerMonth: 1_000 } };
    const now = Date.parse('2027-01-31T22:00:00Z');
    assert.match(
      trafficMessage(tenant, '100%', now),
      /^tenant "shop" has used up its trafficPerMonth of 1000 bytes \(100 %\); its Services are still served, .* in TenantPolicy "shops"$/,
    );
    assert.match(
      trafficMessage(tenant, '80%', now),
      /has used at least 800 bytes \(80 %\) of its trafficPerMonth of 1000 bytes; .*; the count starts again at 2027-02-01T00:00:00Z;/,
    );
  });
});
