import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Condition, ServiceView } from '@weir/model';
import { newEventsFor } from '../../src/status/event-writer.ts';
import { accepted, observedServiceOf, programmed, rawService, refused, view } from '../fixtures/views.ts';

describe('the news of a Service', () => {
  const shown = (...conditions: Condition[]) =>
    observedServiceOf(
      rawService({ conditions: conditions.map((each) => ({ ...each, type: `weir.dev/${each.type}` })) }),
    );
  const news = (each: ServiceView, ...before: Condition[]): string[] =>
    newEventsFor(each, shown(...before)).map(({ type, reason, note }) => `${type} ${reason}: ${note}`);

  test('are reasons that it does not show yet, and a refusal in other words', () => {
    assert.deepEqual(news(view()), ['Normal Programmed: served']);
    assert.deepEqual(news(view(), programmed), []);
    assert.deepEqual(news(view({ conditions: [{ ...programmed, message: 'served elsewhere' }] }), programmed), []);
    assert.deepEqual(news(view({ conditions: [refused] }), accepted), ['Warning QuotaExceeded: 2 of 2 in use']);
    assert.deepEqual(news(view({ conditions: [refused] }), refused), []);
    const other = { ...refused, message: '3 of 3 in use' };
    assert.deepEqual(news(view({ conditions: [other] }), refused), ['Warning QuotaExceeded: 3 of 3 in use']);
  });

  test('are not what is only on the way, or not known', () => {
    const waiting: Condition = { type: 'Programmed', status: 'False', reason: 'WaitingForProxy', message: '' };
    const unknown: Condition = { type: 'Programmed', status: 'Unknown', reason: 'FleetUnreachable', message: '' };
    assert.deepEqual(news(view({ conditions: [accepted, waiting] })), []);
    assert.deepEqual(news(view({ conditions: [accepted, unknown] })), []);
  });
});
