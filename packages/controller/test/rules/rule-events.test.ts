import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RuleEvent, Tenant } from '@weir/model';
import { silentLogger } from '@weir/runtime';
import { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import { RuleEvents } from '../../src/rules/rule-events.ts';
import { EventWriter } from '../../src/status/event-writer.ts';
import type { SourceSnapshot } from '../../src/watch/source.ts';
import { createStatusHarness } from '../fixtures/kubernetes-status.ts';

const EVENT: RuleEvent = {
  kind: 'begin',
  record: {
    rule: 'egress',
    metric: 'outBitsPerSecond',
    above: 1e9,
    action: 'Notify',
    since: 0,
    until: null,
    value: 2e9,
    forMs: 60_000,
    phase: 'acting',
  },
};
const TENANT = { name: 'shop', policy: 'teams', namespaces: ['shop'] } as unknown as Tenant;
const SNAPSHOT = {
  policies: [{ name: 'teams', uid: 'p' }],
  namespaces: [],
  services: [],
} as unknown as SourceSnapshot;

test('writes an Event again after a minute if the API server was busy', async () => {
  const { api, clock } = createStatusHarness();
  const events = new RuleEvents(new EventWriter({ api, clock, log: silentLogger(), instance: 'a' }), clock);
  api.eventFailure = new KubeApiError('AWAY', 'too many requests');
  events.report([{ event: EVENT, tenant: TENANT }], SNAPSHOT);
  await clock.advance(59_000);
  assert.deepEqual([api.events.size, api.eventRequests], [0, 1]);
  api.eventFailure = undefined;
  await clock.advance(1_000);
  assert.deepEqual(
    [...api.events.values()].map(({ reason }) => reason),
    ['RuleNotifies'],
  );
  await events.close();
  assert.equal(clock.pendingTimers, 0);
});

test('does not write again after it was closed', async () => {
  const { api, clock } = createStatusHarness();
  const events = new RuleEvents(new EventWriter({ api, clock, log: silentLogger(), instance: 'a' }), clock);
  api.eventFailure = new KubeApiError('AWAY', 'too many requests');
  events.report([{ event: EVENT, tenant: TENANT }], SNAPSHOT);
  await events.close();
  assert.deepEqual([api.eventRequests, clock.pendingTimers], [1, 0]);
});
