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

/** Keeps it as JSON, as an API server would. */
class FakeArchive {
  readonly kept = new Map<string, string>();
  writes = 0;
  isAway = false;
  /** Of these namespaces nothing is taken, and why. */
  readonly refused = new Map<string, string>();

  async read(): Promise<TenantUsage[]> {
    if (this.isAway) throw new Error('away');
    return [...this.kept].map(([namespace, text]) => {
      const usage = parseTenantUsage({ metadata: { name: 'weir', namespace }, status: JSON.parse(text) });
      return usage ?? assert.fail('what was written can be read');
    });
  }

  async write({ namespace, status }: TenantUsage): Promise<ArchiveOutcome> {
    if (this.isAway) throw new Error('away');
    this.writes += 1;
    const reason = this.refused.get(namespace);
    if (reason !== undefined) return { kind: 'refused', reason };
    this.kept.set(namespace, JSON.stringify(status));
    return { kind: 'written' };
  }

  async remove(namespace: string): Promise<void> {
    this.kept.delete(namespace);
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

function world(options: { archive?: FakeArchive; log?: Logger } = {}) {
  const clock = new ManualClock(Date.UTC(2026, 0, 15));
  const store = new MemoryStore({ clock });
  const archive = options.archive ?? new FakeArchive();
  const { log = silentLogger() } = options;
  const newKeeper = (): UsageReconciler =>
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
  const received = async (): Promise<Record<string, number>> =>
    Object.fromEntries(
      (await store.usage.rows(monthOf(clock.now()))).map((row) => [row.service, row.counters.receivedBytes]),
    );
  return { clock, store, archive, keeper: newKeeper(), newKeeper, report, received };
}

describe('the ledger', () => {
  test('of a new store is opened, so that proxies can flush', async () => {
    const { store, keeper, report, received } = world();
    assert.deepEqual(await store.usage.flush(report('web', 'shop', 5)), { kind: 'seeding' });
    await keeper.reconcile(TABLE);
    assert.deepEqual(await store.usage.flush(report('web', 'shop', 5)), { kind: 'accepted' });
    assert.deepEqual(await received(), { web: 5 });
  });

  test('that was wiped goes on from what was written away, and counts nothing twice', async () => {
    const { store, keeper, newKeeper, clock, report, received } = world();
    await keeper.reconcile(TABLE);
    await store.usage.flush(report('web', 'shop', 1_000));
    await store.usage.flush(report('arena', 'game', 70));
    await clock.advance(5 * 60_000);
    await keeper.reconcile(TABLE);
    store.faults.wipe();
    await newKeeper().reconcile(TABLE);
    assert.deepEqual(await received(), { arena: 70, web: 1_000 });
    await store.usage.flush(report('web', 'shop', 1_500));
    assert.deepEqual(await received(), { arena: 70, web: 1_500 });
  });

  test('of which nobody can say what it held stays shut: opened empty it would bill everything again', async () => {
    const { store, keeper, archive } = world();
    archive.isAway = true;
    await assert.rejects(keeper.reconcile(TABLE));
    assert.equal(await store.usage.isSeeded(), false);
  });

  test('remembers the life of a proxy whose Service was idle all month', async () => {
    const { store, keeper, newKeeper, clock, report, received } = world();
    await keeper.reconcile(TABLE);
    await store.usage.flush(report('web', 'shop', 1_000));
    await clock.advance(62 * 86_400_000);
    await keeper.reconcile(TABLE);
    store.faults.wipe();
    await newKeeper().reconcile(TABLE);
    await store.usage.flush(report('web', 'shop', 1_001));
    assert.deepEqual(await received(), { web: 1 });
  });
});

describe('TenantUsage', () => {
  test('is written for a namespace soon after it has its first Service, and for those that were there not before it is due', async () => {
    const { archive, keeper, clock } = world();
    await keeper.reconcile(TABLE);
    assert.equal(archive.writes, 2);
    const more = tableOf([...TABLE.entries.values(), tenant('blog'), service('posts', 'blog')]);
    await keeper.reconcile(more);
    assert.deepEqual([archive.writes, archive.kept.has('blog')], [3, true]);
    const most = tableOf([...more.entries.values(), tenant('wiki'), service('pages', 'wiki')]);
    await keeper.reconcile(most);
    assert.equal(archive.writes, 3);
    await clock.advance(10_000);
    await keeper.reconcile(most);
    assert.deepEqual([archive.writes, archive.kept.has('wiki')], [4, true]);
  });

  test('says what a namespace used, and its tenant beside the limits', async () => {
    const { store, keeper, clock, report, archive } = world();
    const limited = tableOf([tenant('shop', { services: 3, trafficPerMonth: 1_000_000 }), service('web', 'shop')]);
    await keeper.reconcile(limited);
    await store.usage.flush(report('web', 'shop', 1_000));
    await clock.advance(5 * 60_000);
    await keeper.reconcile(limited);
    const counters = { receivedBytes: 1_000, sentBytes: 0, connections: 0, requests: 0 };
    assert.deepEqual(JSON.parse(archive.kept.get('shop') ?? ''), {
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

  test('is written at most every 5 minutes, only when it says something new, and at once at 80 % and 100 %', async () => {
    const { store, keeper, clock, report, archive } = world();
    const limited = tableOf([tenant('shop', { trafficPerMonth: 1_000 }), service('web', 'shop'), tenant('game')]);
    const writesAfter = async (bytes: number, ms: number): Promise<number> => {
      await store.usage.flush(report('web', 'shop', bytes));
      await clock.advance(ms);
      const before = archive.writes;
      await keeper.reconcile(limited);
      return archive.writes - before;
    };
    await keeper.reconcile(limited);
    assert.equal(await writesAfter(100, 15_000), 0);
    assert.equal(await writesAfter(500, 300_000), 1);
    assert.equal(await writesAfter(500, 300_000), 0);
    assert.equal(await writesAfter(799, 15_000), 0);
    assert.equal(await writesAfter(800, 15_000), 1);
    assert.equal(await writesAfter(900, 15_000), 0);
    assert.deepEqual([...keeper.exhausted.keys()], []);
    assert.equal(await writesAfter(1_200, 15_000), 1);
    const before = [...keeper.exhausted];
    assert.match(
      before.join(),
      /^shop,tenant "shop" has used up its trafficPerMonth of 1000 bytes; .* the fleet's default policy$/,
    );
    await writesAfter(1_300, 15_000);
    assert.deepEqual([...keeper.exhausted], before, 'more traffic is no news');
  });

  test('that could not be written is written as soon as it can be, not 5 minutes later', async () => {
    const { store, keeper, clock, report, archive } = world();
    const limited = tableOf([tenant('shop', { trafficPerMonth: 1_000 }), service('web', 'shop')]);
    await keeper.reconcile(limited);
    const writesAfterOutage = async (bytes: number, ms: number): Promise<number> => {
      await store.usage.flush(report('web', 'shop', bytes));
      await clock.advance(ms);
      archive.isAway = true;
      await assert.rejects(keeper.reconcile(limited));
      archive.isAway = false;
      const before = archive.writes;
      await keeper.reconcile(limited);
      return archive.writes - before;
    };
    assert.equal(await writesAfterOutage(100, 300_000), 1, 'its time had come');
    assert.equal(await writesAfterOutage(800, 15_000), 1, 'a limit was crossed');
  });

  test('that was refused is tried again every 5 minutes, and told once until it is taken', async () => {
    const lines: { level: string; namespaces?: string[]; refused?: number; reason?: string }[] = [];
    const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
    const log = createLogger({ name: 'test', level: 'info', destination });
    const { keeper, clock, archive } = world({ log });
    const newsAfter = async (ms: number): Promise<unknown[]> => {
      await clock.advance(ms);
      lines.length = 0;
      archive.writes = 0;
      await keeper.reconcile(TABLE);
      const said = lines.filter((line) => !('namespaces' in line && !('reason' in line)));
      return [archive.writes, ...said.map(({ level, refused, reason }) => [level, refused, reason])];
    };
    archive.refused.set('game', 'limits: Invalid value: "null"').set('shop', 'forbidden');
    assert.deepEqual(await newsAfter(0), [2, ['warn', 2, 'limits: Invalid value: "null"']]);
    assert.deepEqual(await newsAfter(15_000), [0]);
    assert.deepEqual(await newsAfter(285_000), [2], 'tried again, though it says nothing new');
    archive.refused.delete('game');
    assert.deepEqual(await newsAfter(300_000), [2, ['warn', 1, 'forbidden']]);
    archive.refused.clear();
    assert.deepEqual(await newsAfter(300_000), [1, ['info', undefined, undefined]]);
    assert.deepEqual([...archive.kept.keys()].sort(), ['game', 'shop']);
    assert.deepEqual(await newsAfter(300_000), [0]);
  });

  test('outlives the Services of a namespace until nothing of it counts any more', async () => {
    const { store, keeper, clock, report, archive } = world();
    await keeper.reconcile(TABLE);
    await store.usage.flush(report('web', 'shop', 1));
    const without = tableOf([]);
    await clock.advance(300_000);
    await keeper.reconcile(without);
    assert.deepEqual([...archive.kept.keys()], ['shop']);
    await clock.advance(62 * 86_400_000);
    await keeper.reconcile(without);
    assert.deepEqual([...archive.kept.keys()], []);
  });
});

test('the months that count are this one and the last, over the turn of the year', () => {
  assert.deepEqual(recentMonths(Date.UTC(2026, 0, 31)), ['2026-01', '2025-12']);
  assert.deepEqual(recentMonths(Date.UTC(2026, 10, 1)), ['2026-11', '2026-10']);
});
