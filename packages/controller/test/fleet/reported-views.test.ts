import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_NOTICES, ReportedViews } from '@weir/model';
import { view } from '../fixtures/views.ts';

test('adds the notice about a tenant to each of its published Services, and to no other Service', () => {
  const views = [view(), view({ uid: 'u2', tenant: 'game' }), view({ uid: 'u3', tenant: null })];
  const notice = { reason: 'OverLimit', message: 'used up' } as const;
  const notices = { byTenant: new Map([['shop', [notice]]]), byService: new Map() };
  const reportedViews = new ReportedViews();
  const first = reportedViews.withNotices(views, notices);
  assert.deepEqual(
    first.map(({ conditions }) => conditions.filter(({ type }) => type === 'Degraded').map(({ message }) => message)),
    [['used up'], [], []],
  );
  assert.equal(reportedViews.withNotices(views, { ...notices }), first, 'the same input returns the same list');
  assert.equal(reportedViews.withNotices(views, NO_NOTICES), views);
});
