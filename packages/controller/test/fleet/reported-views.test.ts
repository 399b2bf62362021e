import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReportedViews } from '../../src/fleet/fleet-reconciler.ts';
import { view } from '../fixtures/views.ts';

test('who has used up the month is told in every Service that has an address, and no other tenant is', () => {
  const views = [view(), view({ uid: 'u2', tenant: 'game' }), view({ uid: 'u3', tenant: null })];
  const exhausted = new Map([['shop', 'used up']]);
  const told = new ReportedViews();
  const first = told.withExhaustedMessages(views, exhausted);
  assert.deepEqual(
    first.map(({ conditions }) => conditions.filter(({ type }) => type === 'Degraded').map(({ message }) => message)),
    [['used up'], [], []],
  );
  assert.equal(told.withExhaustedMessages(views, new Map(exhausted)), first, 'the same is the same list');
  assert.equal(told.withExhaustedMessages(views, new Map()), views);
});
