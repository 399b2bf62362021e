import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { countersFrom, minuteOf, monthOf } from '@weir/model';
import { createHarness, TABLE } from '../fixtures/usage-harness.ts';

describe('the ledger', () => {
  test('of a new store is seeded, so that proxies can flush', async () => {
    const { store, reconciler, report, received } = createHarness();
    assert.deepEqual(await store.usage.flush(report('web', 'shop', 5)), { kind: 'seeding' });
    await reconciler.reconcile(TABLE);
    assert.deepEqual(await store.usage.flush(report('web', 'shop', 5)), { kind: 'accepted' });
    assert.deepEqual(await received(), { web: 5 });
  });

  test('of a wiped store is seeded with the archived usage, and counts nothing twice', async () => {
    const { store, reconciler, newReconciler, clock, report, received } = createHarness();
    await reconciler.reconcile(TABLE);
    await store.usage.flush(report('web', 'shop', 1_000));
    await store.usage.flush(report('arena', 'game', 70));
    await clock.advance(5 * 60_000);
    await reconciler.reconcile(TABLE);
    store.faults.wipe();
    await newReconciler().reconcile(TABLE);
    assert.deepEqual(await received(), { arena: 70, web: 1_000 });
    await store.usage.flush(report('web', 'shop', 1_500));
    assert.deepEqual(await received(), { arena: 70, web: 1_500 });
  });

  test('of a wiped store has requests by code class, also after a TenantUsage without code classes', async () => {
    const { store, reconciler, newReconciler, clock, report, archive } = createHarness();
    await reconciler.reconcile(TABLE);
    const flush = async (values: readonly number[]): Promise<void> => {
      const counters = countersFrom(values);
      const { slots, ...rest } = report('web', 'shop', 0);
      const points = [{ minute: minuteOf(clock.now()), counters }];
      await store.usage.flush({ ...rest, slots: slots.map((slot) => ({ ...slot, points })) });
    };
    const wipe = async (): Promise<void> => {
      store.faults.wipe();
      await newReconciler().reconcile(TABLE);
    };
    const requests = async (): Promise<unknown> => {
      const [row] = await store.usage.rows(monthOf(clock.now()));
      return [row?.counters.requests, row?.counters.requestsByCodeClass];
    };
    await flush([1, 1, 1, 6, 3, 0, 2, 0, 1]);
    await clock.advance(5 * 60_000);
    await reconciler.reconcile(TABLE);
    await wipe();
    await flush([1, 1, 1, 7, 4, 0, 2, 0, 1]);
    assert.deepEqual(await requests(), [7, { '2xx': 4, '3xx': 0, '4xx': 2, '5xx': 0, none: 1 }]);
    const text = archive.textByNamespace.get('shop') ?? '';
    archive.textByNamespace.set('shop', text.replaceAll(/,"requestsByCodeClass":\{[^}]*\}/g, ''));
    await wipe();
    assert.deepEqual(await requests(), [6, undefined]);
    await flush([1, 1, 1, 8, 5, 0, 2, 0, 1]);
    assert.deepEqual(await requests(), [8, { '2xx': 5, '3xx': 0, '4xx': 2, '5xx': 0, none: 1 }]);
  });

  test('of a wiped store has the refusals of running proxies, which no TenantUsage has', async () => {
    const { store, reconciler, newReconciler, clock, report, archive } = createHarness();
    await reconciler.reconcile(TABLE);
    const { slots, ...rest } = report('web', 'shop', 0);
    const counters = countersFrom([1, 1, 1, 0], { 'rate-limit': 3 });
    const points = [{ minute: minuteOf(clock.now()), counters }];
    const flushed = { ...rest, slots: slots.map((slot) => ({ ...slot, points })) };
    await store.usage.flush(flushed);
    await clock.advance(5 * 60_000);
    await reconciler.reconcile(TABLE);
    assert.doesNotMatch(archive.textByNamespace.get('shop') ?? assert.fail('nothing is archived'), /refused/);
    store.faults.wipe();
    await newReconciler().reconcile(TABLE);
    await store.usage.flush(flushed);
    assert.deepEqual((await store.usage.rows(monthOf(clock.now())))[0]?.counters, counters);
  });

  test('is not seeded while the archive is unreachable, because an empty ledger would count everything again', async () => {
    const { store, reconciler, archive } = createHarness();
    archive.isUnreachable = true;
    await assert.rejects(reconciler.reconcile(TABLE));
    assert.equal(await store.usage.isSeeded(), false);
  });

  test('is archived after a seed when all running proxies have reported in full, so a second wipe loses nothing', async () => {
    const { store, reconciler, newReconciler, clock, report, beat, received, archive } = createHarness();
    await reconciler.reconcile(TABLE);
    await store.usage.flush(report('web', 'shop', 1_000));
    await clock.advance(5 * 60_000);
    await reconciler.reconcile(TABLE);
    await store.usage.flush(report('web', 'shop', 1_500));
    store.faults.wipe();
    const second = newReconciler();
    const archived = archive.textByNamespace.get('shop');
    await beat(1);
    await second.reconcile(TABLE);
    assert.equal(archive.textByNamespace.get('shop'), archived, 'the proxy has not reported yet');
    await store.usage.flush({ ...report('web', 'shop', 1_500), isFull: true });
    await clock.advance(15_000);
    await beat(1);
    await second.reconcile(TABLE);
    assert.equal(JSON.parse(archive.textByNamespace.get('shop') ?? '').partial, undefined);
    await clock.advance(60_000);
    store.faults.wipe();
    await newReconciler().reconcile(TABLE);
    assert.deepEqual(await received(), { web: 1_500 }, 'the proxy has ended and reports no more');
  });

  test('is seeded without usage that a TenantUsage claims of another tenant, namespace or Service', async () => {
    const { store, reconciler, newReconciler, clock, report, received, archive } = createHarness();
    await reconciler.reconcile(TABLE);
    await store.usage.flush(report('web', 'shop', 1_000));
    await store.usage.flush(report('arena', 'game', 70));
    await clock.advance(5 * 60_000);
    await reconciler.reconcile(TABLE);
    const counters = { receivedBytes: 1e12, sentBytes: 0, connections: 0, requests: 0 };
    const forged = [
      { uid: 'stranger', name: 'x', tenant: 'game', ...counters },
      { uid: 'arena', name: 'x', tenant: 'shop', ...counters },
      { uid: 'arena', name: 'x', tenant: 'game', ...counters },
      { uid: 'other.game', name: 'x', tenant: 'shop', ...counters },
    ];
    const status = JSON.parse(archive.textByNamespace.get('shop') ?? '');
    status.months[0].services.push(...forged);
    status.lives.push(...forged.map((each) => ({ ...each, node: 'a', life: 1 })));
    status.updatedAt = '2099-01-01T00:00:00Z';
    archive.textByNamespace.set('shop', JSON.stringify(status));
    store.faults.wipe();
    await newReconciler().reconcile(TABLE);
    const rows = await store.usage.rows(monthOf(clock.now()));
    assert.deepEqual(
      rows.map((row) => [row.service, row.tenant, row.namespace, row.counters.receivedBytes]),
      [
        ['arena', 'game', 'game', 70],
        ['web', 'shop', 'shop', 1_000],
      ],
    );
    await store.usage.flush(report('arena', 'game', 90));
    assert.deepEqual(await received(), { arena: 90, web: 1_000 });
  });

  test('is seeded from the last export of the same leader, whatever a TenantUsage says', async () => {
    const { store, reconciler, clock, report, received, archive } = createHarness();
    await reconciler.reconcile(TABLE);
    await store.usage.flush(report('web', 'shop', 1_000));
    await clock.advance(5 * 60_000);
    await reconciler.reconcile(TABLE);
    archive.textByNamespace.set('shop', JSON.stringify({ updatedAt: '2099-01-01T00:00:00Z', months: [], lives: [] }));
    store.faults.wipe();
    await reconciler.reconcile(TABLE);
    assert.deepEqual(await received(), { web: 1_000 });
  });

  test('folds Services that have been gone for 7 days, and their totals stay', async () => {
    const { store, reconciler, clock, report, received } = createHarness();
    await reconciler.reconcile(TABLE);
    for (const name of ['gone1', 'gone2', 'web']) await store.usage.flush(report(name, 'shop', 10));
    for (let day = 0; day < 8; day += 1) {
      assert.deepEqual(await received(), { gone1: 10, gone2: 10, web: 10 });
      await clock.advance(86_400_000);
      await reconciler.reconcile(TABLE);
    }
    assert.deepEqual(await received(), { 'other.shop': 20, web: 10 });
  });

  test('keeps the base of an incarnation whose Service was idle all month', async () => {
    const { store, reconciler, newReconciler, clock, report, received } = createHarness();
    await reconciler.reconcile(TABLE);
    await store.usage.flush(report('web', 'shop', 1_000));
    await clock.advance(62 * 86_400_000);
    await reconciler.reconcile(TABLE);
    store.faults.wipe();
    await newReconciler().reconcile(TABLE);
    await store.usage.flush(report('web', 'shop', 1_001));
    assert.deepEqual(await received(), { web: 1 });
  });
});
