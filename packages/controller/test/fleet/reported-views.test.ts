import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReportedViews } from '@weir/model';
import { view } from '../fixtures/views.ts';

test('adds the message to every published Service of an exhausted tenant, and to no other Service', () => {
  const views = [view(), view({ uid: 'u2', tenant: 'game' }), view({ uid: 'u3', tenant: null })];
  const exhausted = new Map([['shop', 'used up']]);
  const reportedViews = new ReportedViews();
  const first = reportedViews.withExhaustedMessages(views, exhausted);
  assert.deepEqual(
    first.map(({ conditions }) => conditions.filter(({ type }) => type === 'Degraded').map(({ message }) => message)),
    [['used up'], [], []],
  );
  assert.equal(
    reportedViews.withExhaustedMessages(views, new Map(exhausted)),
    first,
    'the same input returns the same list',
  );
  assert.equal(reportedViews.withExhaustedMessages(views, new Map()), views);
});
