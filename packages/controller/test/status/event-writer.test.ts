import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Condition } from '@weir/model';
import { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import { createStatusHarness } from '../fixtures/kubernetes-status.ts';
import { accepted, type RawService, rawService, refused, view } from '../fixtures/views.ts';

describe('telling Events', () => {
  test('renews the Event of a refused Service every half hour, also under a new leader', async () => {
    const { api, clock, status, write } = createStatusHarness();
    const counts = (): number[] =>
      [...api.events.values()].map((event) => (event.series as { count: number } | undefined)?.count ?? 1);
    const no = view({ addresses: [], ports: [], conditions: [refused] });
    status.observe('web', rawService());
    await write(no);
    await write(no);
    assert.deepEqual(counts(), [1]);
    await clock.advance(31 * 60_000);
    await write(no);
    assert.deepEqual(counts(), [2]);
    const next = createStatusHarness({ api, clock });
    next.status.observe('web', rawService(api.applied[0]?.body?.status as RawService['status']));
    await next.write(no);
    assert.deepEqual(counts(), [2], 'it was told a moment ago');
    await clock.advance(31 * 60_000);
    await next.write(no);
    assert.deepEqual(counts(), [3]);
  });

  test('tells of a refused Service a minute later when the API server was busy, and not half an hour', async () => {
    const { api, clock, status, write } = createStatusHarness();
    const no = view({ addresses: [], ports: [], conditions: [refused] });
    status.observe('web', rawService());
    api.eventFailure = new KubeApiError('AWAY', 'too many requests');
    await write(no);
    await clock.advance(31_000);
    await write(no);
    assert.equal(api.eventRequests, 1, 'never at once');
    api.eventFailure = undefined;
    await clock.advance(31_000);
    await write(no);
    assert.equal(api.events.size, 1);
    await clock.advance(5 * 60_000);
    await write(no);
    assert.equal(api.eventRequests, 3, 'and then it was told');
  });

  test('tells news that a busy API server did not take a minute later, once, and those that are true by then', async () => {
    const { api, clock, status, write } = createStatusHarness();
    const reasons = (): unknown[] => [...api.events.values()].map(({ reason }) => reason);
    const fewer: Condition = { type: 'Degraded', status: 'True', reason: 'FewerNodes', message: 'on 1 of 2' };
    const { conditions } = view();
    const good = view();
    const degraded = view({ conditions: [...conditions, fewer] });
    status.observe('web', rawService());
    api.eventFailure = new KubeApiError('AWAY', 'too many requests');
    await write(degraded);
    assert.equal(api.eventRequests, 2, 'of Programmed and FewerNodes');
    await clock.advance(31_000);
    await write(degraded);
    assert.equal(api.eventRequests, 2, 'never at once');
    api.eventFailure = undefined;
    await write(good);
    await clock.advance(31_000);
    await write(good);
    assert.deepEqual(reasons(), ['Programmed'], 'of what is over nobody is told');
    const requests = api.eventRequests;
    await clock.advance(5 * 60_000);
    await write(good);
    assert.equal(api.eventRequests, requests, 'and it was told');
  });

  test('does not make up for news a second time, nor for those that may not be written', async () => {
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

  test('asks once in half an hour for an Event that may not be written', async () => {
    const { api, clock, status, write } = createStatusHarness();
    const no = view({ addresses: [], ports: [], conditions: [refused] });
    status.observe('web', rawService());
    api.eventFailure = new KubeApiError('FORBIDDEN', 'events is forbidden');
    for (let minute = 0; minute < 29; minute++) {
      await write(no);
      await clock.advance(60_000);
    }
    assert.equal(api.eventRequests, 1);
    await clock.advance(2 * 60_000);
    await write(no);
    assert.equal(api.eventRequests, 2);
  });

  test('tells why a Service has been pending for half a minute, and renews it; not of one that gets its address at once', async () => {
    const { api, clock, status, write } = createStatusHarness();
    const waiting: Condition = { type: 'Programmed', status: 'False', reason: 'WaitingForProxy', message: 'of n1' };
    const pending = view({ state: 'Pending', addresses: [], conditions: [accepted, waiting] });
    const told = (): string[] =>
      [...api.events.values()].map((event) => {
        const { count = 1 } = (event.series ?? {}) as { count?: number };
        return `${event.type} ${event.reason} ${count}`;
      });
    status.observe('web', rawService());
    await write(pending);
    await clock.advance(29_000);
    await write(pending);
    assert.deepEqual(told(), []);
    await clock.advance(31_000);
    await write(pending);
    assert.deepEqual(told(), ['Warning WaitingForProxy 1']);
    await clock.advance(31 * 60_000);
    await write(pending);
    assert.deepEqual(told(), ['Warning WaitingForProxy 2']);
    assert.equal(api.applied.length, 1, 'its status says the same all the while');
    await write(view());
    await write(pending);
    await clock.advance(29_000);
    await write(pending);
    assert.deepEqual(told(), ['Warning WaitingForProxy 2', 'Normal Programmed 1'], 'it begins anew');
    // The watch missed that the Service was deleted and made again.
    status.observe('web', rawService({}, { uid: 'u2' }));
    await write({ ...pending, uid: 'u2' });
    await clock.advance(29_000);
    await write({ ...pending, uid: 'u2' });
    assert.equal(told().length, 2, 'another Service of its name has not been pending for so long');
  });
});
