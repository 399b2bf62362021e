import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  NO_ALLOCATIONS,
  NO_NOTICES,
  type ServiceView,
  serviceViewsFor,
  trafficExhaustedMessage,
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

  test('has a message with the limit, the effect on its Services, and the policy to ask for', () => {
    const tenant = { name: 'shop', policy: 'shops', limits: { trafficPerMonth: 1_000 } };
    assert.match(
      trafficExhaustedMessage(tenant),
      /^tenant "shop" has used up its trafficPerMonth of 1000 bytes; its Services are still served, .* in TenantPolicy "shops"$/,
    );
  });
});
