import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countersFrom, EMPTY_TABLE, type UsageRow } from '@weir/model';
import { usageItemsFor, visibleUsage } from '../../src/usage/usage-items.ts';

const row = (namespace: string, values: readonly number[]): UsageRow => ({
  service: `uid-${namespace}`,
  tenant: 'shop',
  namespace,
  name: 'web',
  counters: countersFrom(values),
});

test('shows of a tenant of others only the sum of the visible Services, also of requests by code class', () => {
  const rows = [row('seen', [1, 2, 1, 1]), row('hidden', [10, 20, 10, 10, 7, 0, 0, 3, 0])];
  const items = usageItemsFor([], rows, { month: '2026-01', forecasts: new Map([['shop', 99]]) });
  assert.deepEqual([items[0]?.requestsByCodeClass?.['5xx'], items[0]?.forecastBytes], [3, 99]);
  const visible = (namespace: string): unknown =>
    visibleUsage({ kind: 'namespaces', namespaces: new Set([namespace]) }, EMPTY_TABLE, items);
  const item = { tenant: 'shop', month: '2026-01', trafficPerMonth: null, forecastBytes: null };
  const seen = countersFrom([1, 2, 1, 1]);
  assert.deepEqual(visible('seen'), [{ ...item, ...seen, services: [{ namespace: 'seen', name: 'web', ...seen }] }]);
  const hidden = countersFrom([10, 20, 10, 10, 7, 0, 0, 3, 0]);
  assert.deepEqual(visible('hidden'), [
    { ...item, ...hidden, services: [{ namespace: 'hidden', name: 'web', ...hidden }] },
  ]);
  assert.deepEqual(visible('other'), []);
});
