import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ServiceView } from '@weir/model';
import { desiredStatusFor, isStatusCurrent } from '../../src/status/service-status.ts';
import { accepted, observedServiceOf, rawService, refused, view } from '../fixtures/views.ts';

const NOW = Date.UTC(2026, 6, 1);

describe('the status of a Service', () => {
  test('has the ipMode and every port, with the reason of ports that are not served', () => {
    const portErrors = [{ port: 53, protocol: 'SCTP', reason: 'UnsupportedProtocol', message: '' }] as const;
    const status = desiredStatusFor(view({ portErrors }), observedServiceOf(rawService()), NOW);
    const ports = [
      { port: 53, protocol: 'SCTP', error: 'weir.dev/UnsupportedProtocol' },
      { port: 80, protocol: 'TCP' },
    ];
    assert.deepEqual(status.ingress, [{ ip: '10.0.0.1', ipMode: 'Proxy', ports }]);
  });

  test('keeps the time of a condition until its status changes', () => {
    const before = {
      ...accepted,
      type: 'weir.dev/Accepted',
      message: 'another message',
      lastTransitionTime: '2020-01-01T00:00:00Z',
    };
    const observed = observedServiceOf(
      rawService({ conditions: [before, { type: 'example.com/Other', status: 'True' }] }),
    );
    const times = (each: ServiceView): string[] =>
      desiredStatusFor(each, observed, NOW).conditions.map(({ lastTransitionTime }) => lastTransitionTime);
    assert.deepEqual(times(view()), ['2020-01-01T00:00:00Z', '2026-07-01T00:00:00Z']);
    assert.deepEqual(times(view({ conditions: [refused] })), ['2026-07-01T00:00:00Z']);
    const renamed = view({
      conditions: [
        { ...accepted, reason: 'Else' },
        { ...refused, reason: accepted.reason },
      ],
    });
    assert.deepEqual(times(renamed), ['2020-01-01T00:00:00Z', '2026-07-01T00:00:00Z']);
  });

  test('is current whatever other conditions and orders there are, and outdated if a condition or address of Weir differs', () => {
    const status = desiredStatusFor(view(), observedServiceOf(rawService()), NOW);
    const [first, second] = status.conditions;
    const conditions = [second, { type: 'example.com/Other' }, first] as object[];
    const observed = observedServiceOf(rawService({ loadBalancer: { ingress: status.ingress }, conditions }));
    const isCurrent = (each: ServiceView, service = observed): boolean =>
      isStatusCurrent(desiredStatusFor(each, service, NOW + 60_000), service, 'weir-controller');
    assert.ok(isCurrent(view()));
    assert.ok(!isCurrent(view({ addresses: [] })));
    assert.ok(!isCurrent(view({ conditions: [accepted] })));
    const foreign = observedServiceOf(
      rawService({ loadBalancer: { ingress: [{ ip: '10.9.9.9' }] }, conditions }, { statusManager: 'k3s' }),
    );
    assert.ok(!isCurrent(view(), foreign));
    assert.ok(isCurrent(view({ addresses: [] }), foreign), 'the addresses of another controller cannot be removed');
  });
});
