import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Condition, ServiceView } from '@weir/model';
import { newEventsFor } from '../../src/status/event-writer.ts';
import { accepted, observedServiceOf, programmed, rawService, refused, view } from '../fixtures/views.ts';

describe('newEventsFor', () => {
  const observedWith = (...conditions: Condition[]) =>
    observedServiceOf(
      rawService({ conditions: conditions.map((each) => ({ ...each, type: `weir.dev/${each.type}` })) }),
    );
  const newEvents = (each: ServiceView, ...before: Condition[]): string[] =>
    newEventsFor(each, observedWith(...before)).map(({ type, reason, note }) => `${type} ${reason}: ${note}`);

  test('returns reasons that the status does not show yet, and a refusal with a new message', () => {
    assert.deepEqual(newEvents(view()), ['Normal Programmed: served']);
    assert.deepEqual(newEvents(view(), programmed), []);
    assert.deepEqual(newEvents(view({ conditions: [{ ...programmed, message: 'served elsewhere' }] }), programmed), []);
    assert.deepEqual(newEvents(view({ conditions: [refused] }), accepted), ['Warning QuotaExceeded: 2 of 2 in use']);
    assert.deepEqual(newEvents(view({ conditions: [refused] }), refused), []);
    const other = { ...refused, message: '3 of 3 in use' };
    assert.deepEqual(newEvents(view({ conditions: [other] }), refused), ['Warning QuotaExceeded: 3 of 3 in use']);
  });

  test('leaves out transient and unknown conditions, and NotAccepted beside the refusal', () => {
    const nothingServed: Condition = { type: 'Programmed', status: 'False', reason: 'NotAccepted', message: '' };
    const waiting: Condition = { type: 'Programmed', status: 'False', reason: 'WaitingForProxy', message: '' };
    const unknown: Condition = { type: 'Programmed', status: 'Unknown', reason: 'FleetUnreachable', message: '' };
    assert.deepEqual(newEvents(view({ conditions: [accepted, waiting] })), []);
    assert.deepEqual(newEvents(view({ conditions: [accepted, unknown] })), []);
    assert.deepEqual(newEvents(view({ conditions: [refused, nothingServed] })), [
      'Warning QuotaExceeded: 2 of 2 in use',
    ]);
  });
});
