import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Condition } from '@weir/model';
import { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import { createStatusHarness } from '../fixtures/kubernetes-status.ts';
import { accepted, type RawService, rawService, refused, view } from '../fixtures/views.ts';

describe('EventWriter', () => {
  test('renews the Event of a refused Service every half hour, also under a new leader', async () => {
    const { api, clock, status, write } = createStatusHarness();
    const counts = (): number[] =>
      [...api.events.values()].map((event) => (event.series as { count: number } | undefined)?.count ?? 1);
    const refusedView = view({ addresses: [], ports: [], conditions: [refused] });
    status.observe('web', rawService());
    await write(refusedView);
    await write(refusedView);
    assert.deepEqual(counts(), [1]);
    await clock.advance(31 * 60_000);
    await write(refusedView);
    assert.deepEqual(counts(), [2]);
    const next = createStatusHarness({ api, clock });
    next.status.observe('web', rawService(api.applied[0]?.body?.status as RawService['status']));
    await next.write(refusedView);
    assert.deepEqual(counts(), [2], 'the previous leader has just written it');
    await clock.advance(31 * 60_000);
    await next.write(refusedView);
    assert.deepEqual(counts(), [3]);
  });

  test('retries the Event of a refused Service after a minute if the API server was busy', async () => {
    const { api, clock, status, write } = createStatusHarness();
    const refusedView = view({ addresses: [], ports: [], conditions: [refused] });
    status.observe('web', rawService());
    api.eventFailure = new KubeApiError('AWAY', 'too many requests');
    await write(refusedView);
    await clock.advance(31_000);
    await write(refusedView);
    assert.equal(api.eventRequests, 1, 'no retry within a minute');
    api.eventFailure = undefined;
    await clock.advance(31_000);
    await write(refusedView);
    assert.equal(api.events.size, 1);
    await clock.advance(5 * 60_000);
    await write(refusedView);
    assert.equal(api.eventRequests, 3, 'no request after the Event is written');
  });

  test('retries failed Events about a change once after a minute, if they are still true', async () => {
    const { api, clock, status, write } = createStatusHarness();
    const reasons = (): unknown[] => [...api.events.values()].map(({ reason }) => reason);
    const fewer: Condition = { type: 'Degraded', status: 'True', reason: 'FewerNodes', message: 'on 1 of 2' };
    const { conditions } = view();
    const good = view();
    const degraded = view({ conditions: [...conditions, fewer] });
    status.observe('web', rawService());
    api.eventFailure = new KubeApiError('AWAY', 'too many requests');
    await write(degraded);
    assert.equal(api.eventRequests, 2, 'for Programmed and FewerNodes');
    await clock.advance(31_000);
    await write(degraded);
    assert.equal(api.eventRequests, 2, 'no retry within a minute');
    api.eventFailure = undefined;
    await write(good);
    await clock.advance(31_000);
    await write(good);
    assert.deepEqual(reasons(), ['Programmed'], 'FewerNodes is not true any more');
    const requests = api.eventRequests;
    await clock.advance(5 * 60_000);
    await write(good);
    assert.equal(api.eventRequests, requests, 'no request after the Event is written');
  });

  test('does not retry an Event about a change twice, and never if it is forbidden', async () => {
    for (const [code, requests] of [
      ['AWAY', 2],
      ['FORBIDDEN', 1],
    ] as const) {
      const { api, clock, status, write } = createStatusHarness();
      status.observe('web', rawService());
      api.eventFailure = new KubeApiError(code, 'no');
      const same = view();
      for (let minute = 0; minute < 10; minute += 1) {
        await write(same);
        await clock.advance(61_000);
      }
      assert.equal(api.eventRequests, requests, code);
    }
  });

  test('tries a forbidden Event once in half an hour', async () => {
    const { api, clock, status, write } = createStatusHarness();
    const refusedView = view({ addresses: [], ports: [], conditions: [refused] });
    status.observe('web', rawService());
    api.eventFailure = new KubeApiError('FORBIDDEN', 'events is forbidden');
    for (let minute = 0; minute < 29; minute++) {
      await write(refusedView);
      await clock.advance(60_000);
    }
    assert.equal(api.eventRequests, 1);
    await clock.advance(2 * 60_000);
    await write(refusedView);
    assert.equal(api.eventRequests, 2);
  });

  test('writes and renews an Event for a Service that is pending for half a minute, but not for shorter', async () => {
    const { api, clock, status, write } = createStatusHarness();
    const waiting: Condition = { type: 'Programmed', status: 'False', reason: 'WaitingForProxy', message: 'of n1' };
    const pending = view({ state: 'Pending', addresses: [], conditions: [accepted, waiting] });
    const written = (): string[] =>
      [...api.events.values()].map((event) => {
        const { count = 1 } = (event.series ?? {}) as { count?: number };
        return `${event.type} ${event.reason} ${count}`;
      });
    status.observe('web', rawService());
    await write(pending);
    await clock.advance(29_000);
    await write(pending);
    assert.deepEqual(written(), []);
    await clock.advance(31_000);
    await write(pending);
    assert.deepEqual(written(), ['Warning WaitingForProxy 1']);
    await clock.advance(31 * 60_000);
    await write(pending);
    assert.deepEqual(written(), ['Warning WaitingForProxy 2']);
    assert.equal(api.applied.length, 1, 'its status has not changed');
    await write(view());
    await write(pending);
    await clock.advance(29_000);
    await write(pending);
    assert.deepEqual(written(), ['Warning WaitingForProxy 2', 'Normal Programmed 1'], 'the half minute starts again');
    // The watch missed that the Service was deleted and created again.
    status.observe('web', rawService({}, { uid: 'u2' }));
    await write({ ...pending, uid: 'u2' });
    await clock.advance(29_000);
    await write({ ...pending, uid: 'u2' });
    assert.equal(written().length, 2, 'the new Service of the same name has not been pending for half a minute');
  });
});
