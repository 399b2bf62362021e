import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { countersFrom, minuteOf, monthOf, tableOf, type UsageReport } from '@weir/model';
import { createLogger } from '@weir/runtime';
import { recentMonths } from '../../src/usage/tenant-usage.ts';
import { createHarness, service, TABLE, tenant } from '../fixtures/usage-harness.ts';

describe('TenantUsage', () => {
  test('is written soon for a namespace with a first Service, and for other namespaces only when due', async () => {
    const { archive, reconciler, clock } = createHarness();
    await reconciler.reconcile(TABLE);
    assert.equal(archive.writes, 2);
    const withBlog = tableOf([...TABLE.entries.values(), tenant('blog'), service('posts', 'blog')]);
    await reconciler.reconcile(withBlog);
    assert.deepEqual([archive.writes, archive.textByNamespace.has('blog')], [3, true]);
    const withWiki = tableOf([...withBlog.entries.values(), tenant('wiki'), service('pages', 'wiki')]);
    await reconciler.reconcile(withWiki);
    assert.equal(archive.writes, 3);
    await clock.advance(10_000);
    await reconciler.reconcile(withWiki);
    assert.deepEqual([archive.writes, archive.textByNamespace.has('wiki')], [4, true]);
  });

  test('has the usage of the namespace, and the usage and limits of its tenant', async () => {
    const { store, reconciler, clock, report, archive } = createHarness();
    const limited = tableOf([tenant('shop', { services: 3, trafficPerMonth: 1_000_000 }), service('web', 'shop')]);
    await reconciler.reconcile(limited);
    await store.usage.flush(report('web', 'shop', 1_000));
    await clock.advance(5 * 60_000);
    await reconciler.reconcile(limited);
    const counters = { receivedBytes: 1_000, sentBytes: 0, connections: 0, requests: 0 };
    assert.deepEqual(JSON.parse(archive.textByNamespace.get('shop') ?? ''), {
      updatedAt: '2026-01-15T00:05:00.000Z',
      tenant: {
        name: 'shop',
        month: '2026-01',
        ...counters,
        services: 1,
        ports: 2,
        limits: { services: 3, trafficPerMonth: 1_000_000 },
      },
      months: [
        { month: '2026-01', services: [{ uid: 'web', name: 'web', tenant: 'shop', ...counters }] },
        { month: '2025-12', services: [] },
      ],
      lives: [{ uid: 'web', tenant: 'shop', node: 'a', life: 1, ...counters }],
    });
  });

  test('is written at most every 5 minutes and only if it changed, and at once at 80 % and 100 %', async () => {
    const { store, reconciler, clock, report, archive } = createHarness();
    const limited = tableOf([tenant('shop', { trafficPerMonth: 1_000 }), service('web', 'shop'), tenant('game')]);
    const writesAfter = async (bytes: number, ms: number): Promise<number> => {
      await store.usage.flush(report('web', 'shop', bytes));
      await clock.advance(ms);
      const before = archive.writes;
      await reconciler.reconcile(limited);
      return archive.writes - before;
    };
    await reconciler.reconcile(limited);
    assert.equal(await writesAfter(100, 15_000), 0);
    assert.equal(await writesAfter(500, 300_000), 1);
    assert.equal(await writesAfter(500, 300_000), 0);
    assert.equal(await writesAfter(799, 15_000), 0);
    assert.equal(await writesAfter(800, 15_000), 1);
    assert.equal(await writesAfter(900, 15_000), 0);
    assert.match(reconciler.notices.byTenant.get('shop')?.[0]?.message ?? '', /at least 800 bytes \(80 %\)/);
    assert.equal(await writesAfter(1_200, 15_000), 1);
    const before = [...reconciler.notices.byTenant];
    assert.match(
      before.map(([name, notices]) => `${name},${notices.map(({ message }) => message)}`).join(),
      /^shop,tenant "shop" has used up its trafficPerMonth of 1000 bytes \(100 %\); .* the fleet's default policy$/,
    );
    await writesAfter(1_300, 15_000);
    assert.deepEqual([...reconciler.notices.byTenant], before, 'more traffic does not change the message');
  });

  test('makes a Service say that its limit refuses clients, also while the archive is unreachable', async () => {
    const { store, reconciler, clock, report, archive } = createHarness();
    await reconciler.reconcile(TABLE);
    await clock.advance(10 * 60_000);
    const { slots, ...rest } = report('web', 'shop', 0);
    const points = [{ minute: minuteOf(clock.now()), counters: countersFrom([], { 'connection-limit': 50 }) }];
    await store.usage.flush({ ...rest, slots: slots.map((slot) => ({ ...slot, points })) });
    const claim = { demand: 45, weight: 1, floor: 40, used: 0 };
    const lease = { owner: { kind: 'tenant', name: 'shop' }, resource: 'connections' } as const;
    const requests = [{ ...lease, limit: 40, claim, held: 40, wanted: 40 }];
    await store.leases.exchange({ node: 'a', life: 1, sequence: 1, mayRaise: true, requests });
    const limited = tableOf([tenant('shop', { connections: 40 }), service('web', 'shop')]);
    archive.isUnreachable = true;
    await clock.advance(65_000);
    await assert.rejects(reconciler.reconcile(limited));
    const [notice] = reconciler.notices.byService.get('web') ?? [];
    assert.match(
      notice?.message ?? '',
      /^limits refuse clients \(connection-limit\): .* 50 connections were refused and 0 accepted; the limit is connections 40 in the fleet's default policy \(40 open\);/,
    );
    assert.equal(reconciler.notices.byService.has('arena'), false);
  });

  test('is written as soon as the archive is reachable, not 5 minutes later', async () => {
    const { store, reconciler, clock, report, archive } = createHarness();
    const limited = tableOf([tenant('shop', { trafficPerMonth: 1_000 }), service('web', 'shop')]);
    await reconciler.reconcile(limited);
    const writesAfterOutage = async (bytes: number, ms: number): Promise<number> => {
      await store.usage.flush(report('web', 'shop', bytes));
      await clock.advance(ms);
      archive.isUnreachable = true;
      await assert.rejects(reconciler.reconcile(limited));
      archive.isUnreachable = false;
      const before = archive.writes;
      await reconciler.reconcile(limited);
      return archive.writes - before;
    };
    assert.equal(await writesAfterOutage(100, 300_000), 1, 'the interval was over');
    assert.equal(await writesAfterOutage(800, 15_000), 1, 'the tenant reached 80 %');
  });

  test('is retried every 5 minutes after a refusal, which is logged once', async () => {
    const lines: { level: string; namespaces?: string[]; refused?: number; reason?: string }[] = [];
    const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
    const log = createLogger({ name: 'test', level: 'info', destination });
    const { reconciler, clock, archive } = createHarness({ log });
    const writesAndLogsAfter = async (ms: number): Promise<unknown[]> => {
      await clock.advance(ms);
      lines.length = 0;
      archive.writes = 0;
      await reconciler.reconcile(TABLE);
      const logs = lines.filter((line) => !('namespaces' in line && !('reason' in line)));
      return [archive.writes, ...logs.map(({ level, refused, reason }) => [level, refused, reason])];
    };
    archive.reasonByRefusedNamespace.set('game', 'limits: Invalid value: "null"').set('shop', 'forbidden');
    assert.deepEqual(await writesAndLogsAfter(0), [2, ['warn', 2, 'limits: Invalid value: "null"']]);
    assert.deepEqual(await writesAndLogsAfter(15_000), [0]);
    assert.deepEqual(await writesAndLogsAfter(285_000), [2], 'written again although it has not changed');
    archive.reasonByRefusedNamespace.delete('game');
    assert.deepEqual(await writesAndLogsAfter(300_000), [2, ['warn', 1, 'forbidden']]);
    archive.reasonByRefusedNamespace.clear();
    assert.deepEqual(await writesAndLogsAfter(300_000), [1, ['info', undefined, undefined]]);
    assert.deepEqual([...archive.textByNamespace.keys()].sort(), ['game', 'shop']);
    assert.deepEqual(await writesAndLogsAfter(300_000), [0]);
  });

  test('says that it is partial if a proxy does not report within a minute, and is completed when it has', async () => {
    const { store, reconciler, clock, report, beat, archive } = createHarness();
    const partialAfter = async (ms: number): Promise<unknown> => {
      await clock.advance(ms);
      await beat(1);
      await reconciler.reconcile(TABLE);
      const text = archive.textByNamespace.get('shop');
      return text === undefined ? 'not written' : JSON.parse(text).partial;
    };
    assert.equal(await partialAfter(0), 'not written');
    assert.equal(await partialAfter(45_000), 'not written');
    assert.equal(await partialAfter(15_000), true);
    await store.usage.flush({ ...report('web', 'shop', 5), isFull: true });
    assert.equal(await partialAfter(15_000), undefined);
  });

  test('has at most 256 KiB, and a store that is seeded from it bills no byte twice', async () => {
    const { store, reconciler, newReconciler, clock, report, archive } = createHarness();
    const names = Array.from({ length: 3_000 }, (_, index) => `short-lived-service-${index}`);
    const reportOf = (node: string, bytes: number): UsageReport => ({
      node,
      life: 1,
      isFull: true,
      slots: names.flatMap((name, index) => report(name, 'shop', bytes + index).slots),
    });
    const total = async (): Promise<number> =>
      (await store.usage.rows(monthOf(clock.now()), 'shop')).reduce((sum, row) => sum + row.counters.receivedBytes, 0);
    const withAll = tableOf([...TABLE.entries.values(), ...names.map((name) => service(name, 'shop'))]);
    await reconciler.reconcile(withAll);
    for (const node of ['a', 'b']) await store.usage.flush(reportOf(node, 1_000));
    const before = await total();
    await clock.advance(5 * 60_000);
    await reconciler.reconcile(withAll);
    const size = Buffer.byteLength(archive.textByNamespace.get('shop') ?? '');
    assert.ok(size > 100_000 && size <= 256 * 1_024 - 2_048, `${size} bytes`);
    store.faults.wipe();
    await newReconciler().reconcile(withAll);
    assert.equal(await total(), before);
    for (const node of ['a', 'b']) await store.usage.flush(reportOf(node, 1_000));
    assert.equal(await total(), before);
    await store.usage.flush(reportOf('b', 1_007));
    assert.equal(await total(), before + 3_000 * 7);
  });

  test('is written again after a person deleted it', async () => {
    const { reconciler, clock, archive } = createHarness();
    await reconciler.reconcile(TABLE);
    archive.textByNamespace.delete('shop');
    for (let round = 0; round < 2; round += 1) {
      await clock.advance(5 * 60_000);
      await reconciler.reconcile(TABLE);
    }
    assert.ok(archive.textByNamespace.has('shop'));
  });

  test('outlives the Services of a namespace until no kept month has usage', async () => {
    const { store, reconciler, clock, report, archive } = createHarness();
    await reconciler.reconcile(TABLE);
    await store.usage.flush(report('web', 'shop', 1));
    const empty = tableOf([]);
    await clock.advance(300_000);
    await reconciler.reconcile(empty);
    assert.deepEqual([...archive.textByNamespace.keys()], ['shop']);
    await clock.advance(62 * 86_400_000);
    await reconciler.reconcile(empty);
    assert.deepEqual([...archive.textByNamespace.keys()], []);
  });
});

test('recentMonths returns this month and the last, also across the turn of the year', () => {
  assert.deepEqual(recentMonths(Date.UTC(2026, 0, 31)), ['2026-01', '2025-12']);
  assert.deepEqual(recentMonths(Date.UTC(2026, 10, 1)), ['2026-11', '2026-10']);
});
