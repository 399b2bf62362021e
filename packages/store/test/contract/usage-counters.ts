// Checks the counters that a row or base may lack: requests by code class, and refusals by reason.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  minuteOf,
  otherServicesUid,
  periodsOf,
  type RefusalCounts,
  type UsageReport,
  ZERO_COUNTERS,
} from '@weir/model';
import type { StoreUnderTest } from './store-fixture.ts';

const NOW = minuteOf(Date.now());
const SLOT = { service: 'u1', tenant: 'shop', namespace: 'shop', name: 'web' };

export function usageCountersContract(subject: StoreUnderTest): void {
  describe(`the optional counters of the ledger of ${subject.name}`, () => {
    test('adds requests by code class to requests of a version without code classes', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const { month } = periodsOf(NOW);
      const slot = { service: 'u1', tenant: 'shop' };
      const old = { receivedBytes: 1, sentBytes: 1, connections: 1, requests: 10 };
      const seeded = [{ month, rows: [{ ...slot, namespace: 'shop', name: 'web', counters: old }] }];
      await store.usage.seed({ months: seeded, bases: [{ ...slot, node: 'n1', life: 7, counters: old }] });
      const classes = { '2xx': 3, '3xx': 0, '4xx': 1, '5xx': 0, none: 2 };
      const counters = { ...old, requests: 16, requestsByCodeClass: classes };
      const flushed = {
        node: 'n1',
        life: 7,
        slots: [{ ...slot, namespace: 'shop', name: 'web', points: [{ minute: NOW, counters }] }],
      };
      await store.usage.flush(flushed);
      await store.usage.flush(flushed);
      assert.deepEqual((await store.usage.rows(month))[0]?.counters, counters);
      const exported = await store.usage.exportSeed([month]);
      assert.deepEqual(exported.bases[0]?.counters, counters);
      await world.wipe();
      await store.usage.seed(exported);
      await store.usage.flush(flushed);
      assert.deepEqual((await store.usage.rows(month))[0]?.counters, counters);
    });

    test('counts refusals once, by reason, also of a client that was never connected', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      await store.usage.seed({ months: [], bases: [] });
      const { minute, month } = periodsOf(NOW);
      const reportFor = (refused: RefusalCounts): UsageReport => ({
        node: 'n1',
        life: 7,
        slots: [{ ...SLOT, points: [{ minute: NOW, counters: { ...ZERO_COUNTERS, refused } }] }],
      });
      const first = reportFor({ 'rate-limit': 3 });
      const second = reportFor({ 'rate-limit': 5, 'a-later-reason': 1 });
      for (const each of [first, second, second, first]) await store.usage.flush(each);
      const counters = { ...ZERO_COUNTERS, refused: { 'rate-limit': 5, 'a-later-reason': 1 } };
      assert.deepEqual((await store.usage.rows(minute))[0]?.counters, counters);
      const exported = await store.usage.exportSeed([month]);
      assert.deepEqual(exported.bases[0]?.counters, counters);
      await world.wipe();
      await store.usage.seed(exported);
      await store.usage.flush(second);
      assert.deepEqual((await store.usage.rows(month))[0]?.counters, counters);
      for (const days of [0, 7]) await store.usage.foldGoneServices(new Set(), NOW * 60_000 + days * 86_400_000);
      const rows = await store.usage.rows(month);
      assert.deepEqual(
        rows.map((each) => [each.service, each.counters]),
        [[otherServicesUid('shop'), counters]],
      );
    });

    test('knows when usage was restored, but not if the ledger began empty', async () => {
      await using world = await subject.open();
      const { usage } = await world.connect();
      assert.equal(await usage.restoredAt(), undefined);
      await usage.seed({ months: [], bases: [] });
      assert.equal(await usage.restoredAt(), undefined);
      await world.wipe();
      const before = world.clock.now();
      const rows = [{ ...SLOT, counters: { ...ZERO_COUNTERS, connections: 1 } }];
      const seed = { months: [{ month: '2026-03', rows }], bases: [] };
      await usage.seed(seed);
      const restoredAt = (await usage.restoredAt()) ?? assert.fail('the ledger has usage');
      // Redis states whole seconds.
      assert.ok(restoredAt > before - 1_000 && restoredAt <= world.clock.now(), `${restoredAt} after ${before}`);
      await usage.seed(seed);
      assert.equal(await usage.restoredAt(), restoredAt);
    });
  });
}
