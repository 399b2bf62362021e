import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  countersFrom,
  minuteOf,
  type ServiceView,
  type SliceObject,
  type TenantPolicyObject,
  UNRESTRICTED_POLICY,
} from '@weir/model';
import { eventsFor } from '../../src/status/event-writer.ts';
import type { StatusSink } from '../../src/status/status-sink.ts';
import { heartbeat, startControllerHarness } from '../fixtures/controller-harness.ts';
import { FakeSource, nodeObject, serviceObject } from '../fixtures/fake-source.ts';

const SLICE: SliceObject = {
  uid: 'uid-slice',
  namespace: 'shop',
  name: 'web-1',
  labels: {},
  annotations: {},
  createdAt: null,
  serviceName: 'web',
  addressType: 'IPv4',
  ports: [{ name: null, port: 8080, protocol: 'TCP' }],
  endpoints: [{ addresses: ['10.9.0.1'], zone: null, ready: true, serving: true, terminating: false }],
};

const POLICY: TenantPolicyObject = {
  uid: 'uid-policy',
  name: 'shops',
  labels: {},
  annotations: {},
  createdAt: null,
  spec: { ...UNRESTRICTED_POLICY, limits: { newConnectionsPerSecond: 10 } },
};

test('a Service says in status and Event that a limit refuses clients, until five quiet minutes have passed', async (context) => {
  let views: readonly ServiceView[] = [];
  const status: StatusSink = {
    observedRevision: 0,
    setDesired: (desired) => {
      views = desired.views;
    },
    write: async () => 'complete',
  };
  const source = new FakeSource({
    nodes: [nodeObject('a', '10.0.0.1')],
    services: [serviceObject('web', { annotations: { 'weir.dev/nodes': '1' } })],
    slices: [SLICE],
    namespaces: [{ uid: 'uid-shop', name: 'shop', labels: {}, annotations: {}, createdAt: null }],
    policies: [POLICY],
  });
  const { store, clock, advance } = await startControllerHarness(context, { status, source });
  const pass = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second += 2) {
      await store.heartbeats.record(heartbeat('a', ['uid-web']));
      await advance(2_000);
    }
  };
  const eventNotes = (): string[] => {
    const [view] = views;
    return view === undefined
      ? ['no Service']
      : eventsFor(view)
          .filter(({ reason, type }) => reason === 'OverLimit' && type === 'Warning')
          .map(({ note }) => note);
  };
  const degraded = (): string | undefined =>
    views[0]?.conditions.find(({ type, status: value }) => type === 'Degraded' && value === 'True')?.reason;
  await pass(60);
  assert.equal(degraded(), undefined);
  const slot = { service: 'uid-web', tenant: 'shop', namespace: 'shop', name: 'web' };
  const counters = countersFrom([0, 0, 500], { 'rate-limit': 40 });
  await store.usage.flush({
    node: 'a',
    life: 1,
    slots: [{ ...slot, points: [{ minute: minuteOf(clock.now()), counters }] }],
  });
  assert.deepEqual(eventNotes(), []);
  await pass(90);
  assert.equal(degraded(), 'OverLimit');
  const [view] = views;
  assert.match(
    view?.conditions.find(({ type }) => type === 'Degraded')?.message ?? '',
    /limits refuse clients \(rate-limit\): in the minute \S+, 40 connections were refused and 500 accepted; the limit is newConnectionsPerSecond 10 in TenantPolicy "shops" \(8\.33 connections\/s used\);/,
  );
  assert.equal(eventNotes().length, 1);
  await pass(240);
  assert.equal(eventNotes().length, 1, 'the Service still says so after four quiet minutes');
  await pass(120);
  assert.deepEqual([eventNotes(), degraded()], [[], undefined]);
});
