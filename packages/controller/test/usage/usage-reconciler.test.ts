import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type Entry,
  minuteOf,
  monthOf,
  type TenantLimits,
  tableOf,
  type UsageReport,
  ZERO_COUNTERS,
} from '@weir/model';
import { createLogger, type Logger, ManualClock, silentLogger } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import { parseTenantUsage } from '../../src/usage/kubernetes-usage-archive.ts';
import type { ArchiveOutcome, TenantUsage } from '../../src/usage/tenant-usage.ts';
import { recentMonths } from '../../src/usage/tenant-usage.ts';
import { UsageReconciler } from '../../src/usage/usage-reconciler.ts';
import { heartbeat } from '../fixtures/heartbeat.ts';

/** A usage archive that keeps usages as JSON, as an API server does. */
class FakeArchive {
  readonly textByNamespace = new Map<string, string>();
  writes = 0;
  isUnreachable = false;
  /** The namespaces whose usage is refused. */
  readonly reasonByRefusedNamespace = new Map<string, string>();

  async read(): Promise<TenantUsage[]> {
    if (this.isUnreachable) throw new Error('unreachable');
    return [...this.textByNamespace].map(([namespace, text]) => {
      const usage = parseTenantUsage({ metadata: { name: 'weir', namespace }, status: JSON.parse(text) });
      return usage ?? assert.fail('the archive cannot parse what it has written');
    });
  }

  async write({ namespace, status }: TenantUsage): Promise<ArchiveOutcome> {
    if (this.isUnreachable) throw new Error('unreachable');
    this.writes += 1;
    const reason = this.reasonByRefusedNamespace.get(namespace);
    if (reason !== undefined) return { kind: 'refused', reason };
    this.textByNamespace.set(namespace, JSON.stringify(status));
    return { kind: 'written' };
  }

  async remove(namespace: string): Promise<void> {
    this.textByNamespace.delete(namespace);
  }
}

const tenant = (name: string, limits: TenantLimits = {}): Entry => ({
  kind: 'tenant',
  id: `tenant/${name}`,
  name,
  policy: null,
  namespaces: [name],
  limits,
  used: { services: 1, ports: 2 },
});

const service = (uid: string, namespace: string): Entry => ({
  kind: 'service',
  id: `service/${uid}`,
  uid,
  namespace,
  name: uid,
  tenant: namespace,
  accepted: { reason: 'Accepted', message: '' },
  degraded: [],
  settings: null,
  ports: [],
  pool: null,
  nodes: [],
});

const TABLE = tableOf([tenant('shop'), tenant('game'), service('web', 'shop'), service('arena', 'game')]);

function createHarness(options: { archive?: FakeArchive; log?: Logger } = {}) {
  const clock = new ManualClock(Date.UTC(2026, 0, 15));
  const store = new MemoryStore({ clock });
  const archive = options.archive ?? new FakeArchive();
  const { log = silentLogger() } = options;
  const newReconciler = (): UsageReconciler =>
    new UsageReconciler({ store: store.usage, heartbeats: store.heartbeats, archive, clock, log });
  const report = (slot: string, namespace: string, receivedBytes: number): UsageReport => ({
    node: 'a',
    life: 1,
    slots: [
      {
        service: slot,
        tenant: namespace,
        namespace,
        name: slot,
        points: [{ minute: minuteOf(clock.now()), counters: { ...ZERO_COUNTERS, receivedBytes } }],
      },
    ],
  });
  const beat = (life: number): Promise<void> => store.heartbeats.record(heartbeat('a', life, 0));
  const received = async (): Promise<Record<string, number>> =>
    Object.fromEntries(
      (await store.usage.rows(monthOf(clock.now()))).map((row) => [row.service, row.counters.receivedBytes]),
    );
  return { clock, store, archive, reconciler: newReconciler(), newReconciler, report, beat, received };
}

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
    assert.deepEqual([...reconciler.exhausted.keys()], []);
    assert.equal(await writesAfter(1_200, 15_000), 1);
    const before = [...reconciler.exhausted];
    assert.match(
      before.join(),
      /^shop,tenant "shop" has used up its trafficPerMonth of 1000 bytes; .* the fleet's default policy$/,
    );
    await writesAfter(1_300, 15_000);
    assert.deepEqual([...reconciler.exhausted], before, 'more traffic does not change the message');
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
