import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { minuteOf, type UsageRow } from '@weir/model';
import type { Store, UsageSeed } from '../../src/contract.ts';
import { report } from './sample-data.ts';
import type { StoreUnderTest } from './store-fixture.ts';

const NOW = minuteOf(Date.now());

export function usageContract(subject: StoreUnderTest): void {
  describe(`the ledger of ${subject.name}`, () => {
    test('returns seeding until the first seed and ignores a second seed', async () => {
      await using world = await subject.open();
      const [a, b] = [await world.connect(), await world.connect()];
      assert.equal(await a.usage.isSeeded(), false);
      assert.deepEqual(await a.usage.flush(report([[NOW, 10]])), { kind: 'seeding' });
      assert.equal(await a.usage.seed({ months: [], bases: [] }), 'seeded');
      assert.equal(await b.usage.seed(seedOf(row(5))), 'already');
      assert.equal(await b.usage.isSeeded(), true);
      assert.deepEqual(await a.usage.rows('2026-03'), []);
      assert.deepEqual(await a.usage.flush(report([[NOW, 10]])), { kind: 'accepted' });
    });

    test('adds the increase of a report to the minute, hour, day and month of each point', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      const midnight = Math.floor(NOW / 1440) * 1440;
      const [before, after] = [midnight - 1, midnight];
      await usage.flush(report([[before, 100]]));
      await usage.flush(
        report([
          [before, 150],
          [after, 175],
        ]),
      );
      const total = async (period: string): Promise<number | undefined> =>
        (await usage.rows(period))[0]?.counters.receivedBytes;
      const [yesterday, today] = [textOf(before), textOf(after)];
      assert.equal(await total(yesterday.slice(0, 10)), 150);
      assert.equal(await total(today.slice(0, 10)), 25);
      assert.equal(await total(yesterday.slice(0, 13)), 150);
      assert.equal(await total(today.slice(0, 13)), 25);
      const months = new Set([yesterday.slice(0, 7), today.slice(0, 7)]);
      const inMonths = await Promise.all([...months].map(async (month) => (await total(month)) ?? 0));
      assert.equal(
        inMonths.reduce((a, b) => a + b),
        175,
      );
    });

    test('counts a slot with many points once, also when repeated', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      const minutes = Array.from({ length: 1_100 }, (_, index) => [NOW - 1_099 + index, index + 1] as const);
      const months = new Set([textOf(NOW - 1_099).slice(0, 7), textOf(NOW).slice(0, 7)]);
      for (let time = 0; time < 2; time += 1) {
        assert.deepEqual(await usage.flush(report(minutes)), { kind: 'accepted' });
        const rows = (await Promise.all([...months].map((month) => usage.rows(month)))).flat();
        assert.equal(
          rows.reduce((sum, { counters }) => sum + counters.receivedBytes, 0),
          1_100,
        );
      }
    });

    test('keeps a row with names per Service and tenant, for one or all tenants', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      await usage.flush(report([[NOW, 1]], { service: 'u2', tenant: 'game' }));
      await usage.flush(report([[NOW, 2]], { service: 'u1', tenant: 'shop' }));
      await usage.flush(report([[NOW, 3]], { service: 'u1', tenant: 'a/b|c:{d}' }));
      const rows = await usage.rows(textOf(NOW));
      assert.deepEqual(
        rows.map(({ service, tenant, namespace, name, counters }) => [service, tenant, namespace, name, counters]),
        [
          ['u1', 'a/b|c:{d}', 'shop', 'web', { receivedBytes: 3, sentBytes: 6, connections: 1, requests: 0 }],
          ['u1', 'shop', 'shop', 'web', { receivedBytes: 2, sentBytes: 4, connections: 1, requests: 0 }],
          ['u2', 'game', 'shop', 'web', { receivedBytes: 1, sentBytes: 2, connections: 1, requests: 0 }],
        ],
      );
      assert.deepEqual(await usage.rows(textOf(NOW), 'game'), rows.slice(2));
      assert.deepEqual(await usage.rows(textOf(NOW), 'nobody'), []);
      assert.deepEqual(await usage.rows('2001-01'), []);
    });

    test('lists the periods in which a tenant has usage, ascending', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      await usage.flush(
        report([
          [NOW - 62, 1],
          [NOW - 1, 2],
          [NOW, 3],
        ]),
      );
      await usage.flush(report([[NOW, 1]], { tenant: 'game' }));
      const minutes = [NOW - 62, NOW - 1, NOW].map(textOf);
      const cut = (length: number): string[] => [...new Set(minutes.map((minute) => minute.slice(0, length)))];
      assert.deepEqual(await usage.periods('shop', 'minute'), minutes);
      assert.deepEqual(await usage.periods('shop', 'hour'), cut(13));
      assert.deepEqual(await usage.periods('shop', 'day'), cut(10));
      assert.deepEqual(await usage.periods('shop', 'month'), cut(7));
      assert.deepEqual(await usage.periods('game', 'minute'), [textOf(NOW)]);
      assert.deepEqual(await usage.periods('nobody', 'month'), []);
    });

    test('adds a late report only to periods whose retention has not ended', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      const [threeDaysAgo, longAgo] = [NOW - 3 * 1440, NOW - 900 * 1440];
      await usage.flush(
        report([
          [longAgo, 10],
          [threeDaysAgo, 15],
        ]),
      );
      assert.deepEqual(await usage.rows(textOf(threeDaysAgo)), []);
      assert.equal((await usage.rows(textOf(threeDaysAgo).slice(0, 13)))[0]?.counters.receivedBytes, 5);
      assert.deepEqual(await usage.rows(textOf(longAgo).slice(0, 10)), []);
      assert.equal((await usage.rows(textOf(longAgo).slice(0, 7)))[0]?.counters.receivedBytes, 10);
    });

    test('ignores repeated and reordered reports', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      for (const bytes of [10, 30, 20, 30, 10, 31]) await usage.flush(report([[NOW, bytes]]));
      assert.equal((await usage.rows(textOf(NOW)))[0]?.counters.receivedBytes, 31);
    });

    test('counts incarnations, nodes, Services and tenants separately', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      await usage.flush(report([[NOW, 100]], { node: 'n1', life: 7 }));
      await usage.flush(report([[NOW, 10]], { node: 'n1', life: 8 }));
      await usage.flush(report([[NOW, 1]], { node: 'n2', life: 7 }));
      await usage.flush(report([[NOW, 1000]], { tenant: 'game' }));
      const rows = await usage.rows(textOf(NOW));
      assert.deepEqual(
        rows.map(({ tenant, counters }) => [tenant, counters.receivedBytes]),
        [
          ['game', 1000],
          ['shop', 111],
        ],
      );
    });

    test('is exact near 2^53', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      const bytes = (Number.MAX_SAFE_INTEGER - 1) / 2;
      await usage.flush(report([[NOW, bytes - 1]]));
      await usage.flush(report([[NOW, bytes]]));
      await usage.flush(report([[NOW, bytes + 0]]));
      const [row] = await usage.rows(textOf(NOW));
      assert.deepEqual(row?.counters, { receivedBytes: bytes, sentBytes: bytes * 2, connections: 1, requests: 0 });
      assert.equal(row?.counters.sentBytes, 9_007_199_254_740_990);
      const copy = await usage.exportSeed([]);
      assert.equal(copy.bases[0]?.counters.sentBytes, 9_007_199_254_740_990);
    });

    test('lists the incarnations that have sent a full report, until they are folded or the store is wiped', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      const listed = async (): Promise<string[]> =>
        (await usage.reportedInFull()).map(({ node, life }) => `${node}/${life}`).sort();
      await usage.flush(report([[NOW, 10]], { life: 6 }));
      assert.deepEqual(await listed(), []);
      const many = Array.from({ length: 600 }, (_, index) => [NOW - 599 + index, index + 1] as const);
      for (const life of [6, 7]) await usage.flush({ ...report(many, { life }), isFull: true });
      await usage.flush({ node: 'n2', life: 7, slots: [], isFull: true });
      assert.deepEqual(await listed(), ['n1/6', 'n1/7', 'n2/7']);
      await usage.fold('n1', 6);
      assert.deepEqual(await listed(), ['n1/7', 'n2/7']);
      await world.wipe();
      assert.deepEqual(await usage.flush({ node: 'n2', life: 7, slots: [], isFull: true }), { kind: 'seeding' });
      assert.deepEqual(await listed(), []);
    });

    test('refuses reports of folded and lower incarnations of a node', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      for (const life of [6, 7, 8]) await usage.flush(report([[NOW, 10]], { life }));
      await usage.flush(report([[NOW, 10]], { node: 'n2', life: 6 }));
      await usage.fold('n1', 7);
      await usage.fold('n1', 3);
      const lives = (await usage.exportSeed([])).bases.map(({ node, life }) => `${node}/${life}`);
      assert.deepEqual(lives.sort(), ['n1/8', 'n2/6']);
      assert.deepEqual(await usage.flush(report([[NOW, 11]], { life: 7 })), { kind: 'folded' });
      assert.deepEqual(await usage.flush(report([[NOW, 11]], { life: 5 })), { kind: 'folded' });
      assert.deepEqual(await usage.flush(report([[NOW, 11]], { life: 8 })), { kind: 'accepted' });
      assert.deepEqual(await usage.flush(report([[NOW, 11]], { node: 'n2', life: 6 })), { kind: 'accepted' });
      assert.equal((await usage.rows(textOf(NOW)))[0]?.counters.receivedBytes, 42);
    });

    test('is restored by seeding an export after a wipe, without loss or double counting', async () => {
      await using world = await subject.open();
      const store = await seeded(await world.connect());
      const { usage } = store;
      await usage.flush(report([[NOW, 100]]));
      await usage.flush(report([[NOW, 50]], { node: 'n2' }));
      const month = textOf(NOW).slice(0, 7);
      const exported = await usage.exportSeed([month]);
      assert.deepEqual(exported.months, [{ month, rows: await usage.rows(month) }]);
      await usage.flush(report([[NOW, 120]]));
      await world.wipe();
      assert.equal(await usage.isSeeded(), false);
      assert.deepEqual(await usage.flush(report([[NOW, 130]])), { kind: 'seeding' });
      assert.equal(await usage.seed(exported), 'seeded');
      assert.deepEqual(await usage.exportSeed([month]), exported);
      await usage.flush(report([[NOW, 130]]));
      await usage.flush(report([[NOW, 50]], { node: 'n2' }));
      assert.equal((await usage.rows(month))[0]?.counters.receivedBytes, 180);
      assert.deepEqual(await usage.periods('shop', 'month'), [month]);
    });

    test('refuses a folded incarnation after a wipe and a seed', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      await usage.flush(report([[NOW, 100]], { life: 7 }));
      await usage.flush(report([[NOW, 10]], { life: 8 }));
      await usage.fold('n1', 7);
      const month = textOf(NOW).slice(0, 7);
      const exported = await usage.exportSeed([month]);
      assert.deepEqual(exported.folded, [{ node: 'n1', life: 7 }]);
      await world.wipe();
      await usage.seed(exported);
      assert.deepEqual(await usage.flush(report([[NOW, 100]], { life: 7 })), { kind: 'folded' });
      assert.equal((await usage.rows(month))[0]?.counters.receivedBytes, 110);
    });

    test('forgets nodes that have been gone for 30 days, and counts nothing twice if they report again', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      const [start, ttl] = [NOW * 60_000, 30 * 86_400_000];
      const nodes = async (): Promise<string[]> => (await usage.exportSeed([])).bases.map(({ node }) => node);
      for (const node of ['gone', 'back', 'kept'])
        await usage.flush({ ...report([[NOW, 10]], { node }), isFull: true });
      await usage.fold('gone', 6);
      await usage.foldGoneNodes(new Set(['kept']), start);
      await usage.foldGoneNodes(new Set(['kept', 'back']), start + ttl - 1);
      assert.deepEqual(await nodes(), ['back', 'gone', 'kept']);
      await usage.foldGoneNodes(new Set(['kept']), start + ttl);
      assert.deepEqual(await nodes(), ['back', 'kept']);
      assert.deepEqual((await usage.reportedInFull()).map(({ node }) => node).sort(), ['back', 'kept']);
      const { folded } = await usage.exportSeed([]);
      assert.deepEqual(folded, [{ node: '', life: Math.floor(start / 1_000) }]);
      // The old incarnation, an incarnation that began today, and the old incarnation again.
      const today = Math.floor((start + ttl) / 1_000);
      assert.deepEqual(await usage.flush(report([[NOW, 10]], { node: 'gone' })), { kind: 'folded' });
      assert.deepEqual(await usage.flush(report([[NOW, 1]], { node: 'gone', life: today })), { kind: 'accepted' });
      assert.deepEqual(await usage.flush(report([[NOW, 10]], { node: 'gone' })), { kind: 'folded' });
      assert.deepEqual(await usage.flush(report([[NOW, 2]], { node: 'new', life: today })), { kind: 'accepted' });
      assert.deepEqual(await usage.flush(report([[NOW, 15]], { node: 'kept' })), { kind: 'accepted' });
      assert.equal((await usage.rows(textOf(NOW)))[0]?.counters.receivedBytes, 38);
    });

    test('folds Services that have been gone for 7 days into one row per namespace, tenant and period', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      const [day, month] = [textOf(NOW).slice(0, 10), textOf(NOW).slice(0, 7)];
      const [start, week] = [NOW * 60_000, 7 * 86_400_000];
      const flush = (service: string, bytes: number, tenant = 'shop') =>
        usage.flush(report([[NOW, bytes]], { service, tenant }));
      for (const [service, bytes] of [
        ['gone1', 1],
        ['gone2', 2],
        ['back', 4],
        ['kept', 8],
      ] as const) {
        await flush(service, bytes);
      }
      await flush('gone1', 100, 'game');
      const rows = async (period: string): Promise<unknown[]> =>
        (await usage.rows(period)).map((each) => [each.service, each.tenant, each.name, each.counters.receivedBytes]);
      const before = await rows(month);
      await usage.foldGoneServices(new Set(['kept']), start);
      await usage.foldGoneServices(new Set(['kept', 'back']), start + week - 1);
      assert.deepEqual(await rows(month), before);
      await usage.foldGoneServices(new Set(['kept', 'back']), start + week);
      const folded = [
        ['back', 'shop', 'web', 4],
        ['kept', 'shop', 'web', 8],
        ['other.shop', 'game', '(other)', 100],
        ['other.shop', 'shop', '(other)', 3],
      ];
      assert.deepEqual(await rows(month), folded);
      assert.deepEqual(await rows(day), folded);
      assert.deepEqual(await rows(textOf(NOW)), folded);
      assert.deepEqual(await flush('gone1', 51), { kind: 'accepted' });
      assert.ok((await rows(month)).some((row) => JSON.stringify(row) === '["gone1","shop","web",50]'));
      await usage.foldGoneServices(new Set(['kept']), start + week);
      await usage.foldGoneServices(new Set(['kept']), start + 2 * week);
      assert.deepEqual((await rows(month)).at(-1), ['other.shop', 'shop', '(other)', 57]);
    });

    test('subtracts a base of other Services once from the increases of its namespace, tenant and incarnation', async () => {
      await using world = await subject.open();
      const store = await world.connect();
      const counters = { receivedBytes: 100, sentBytes: 200, connections: 2, requests: 0 };
      const base = { service: 'other.shop', tenant: 'shop', node: 'n1', life: 7, counters };
      await store.usage.seed({ months: [], bases: [base] });
      const total = async (): Promise<unknown> =>
        (await store.usage.rows(textOf(NOW).slice(0, 7))).map((each) => [each.service, each.counters.receivedBytes]);
      await store.usage.flush(report([[NOW, 70]], { service: 'a' }));
      await store.usage.flush(report([[NOW, 70]], { service: 'a' }));
      assert.deepEqual(await total(), []);
      await store.usage.flush(report([[NOW, 45]], { service: 'b' }));
      await store.usage.flush(report([[NOW, 75]], { service: 'a' }));
      await store.usage.flush(report([[NOW, 7]], { service: 'c', tenant: 'game' }));
      await store.usage.flush(report([[NOW, 7]], { service: 'd', life: 8 }));
      assert.deepEqual(await total(), [
        ['a', 5],
        ['b', 15],
        ['c', 7],
        ['d', 7],
      ]);
    });

    test('exports an empty seed for months without usage', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      assert.deepEqual(await usage.exportSeed(['2020-01']), {
        months: [{ month: '2020-01', rows: [] }],
        bases: [],
        folded: [],
      });
    });

    test('restores usage that a rollback lost at the next report', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      await usage.flush(report([[NOW, 100]]));
      const rollBack = await world.checkpoint();
      await usage.flush(report([[NOW, 140]]));
      await rollBack();
      await usage.flush(report([[NOW, 150]]));
      assert.equal((await usage.rows(textOf(NOW)))[0]?.counters.receivedBytes, 150);
    });

    test('accepts a report with many slots and minutes', async () => {
      await using world = await subject.open();
      const { usage } = await seeded(await world.connect());
      const slots = Array.from({ length: 1_200 }, (_, index) => {
        const [slot] = report(
          [
            [NOW - 1, 10],
            [NOW, 20],
          ],
          { service: `u${index}`, tenant: `t${index % 7}` },
        ).slots;
        if (slot === undefined) throw new Error('a report has a slot');
        return slot;
      });
      assert.deepEqual(await usage.flush({ node: 'n1', life: 1, slots }), { kind: 'accepted' });
      const rows = await usage.rows(textOf(NOW));
      assert.equal(rows.length, 1_200);
      assert.ok(rows.every((each) => each.counters.receivedBytes === 10));
    });
  });
}

async function seeded(store: Store): Promise<Store> {
  await store.usage.seed({ months: [], bases: [] });
  return store;
}

/** Formats a minute as `YYYY-MM-DDTHH:MM`, independently of the code under test. */
function textOf(minute: number): string {
  return new Date(minute * 60_000).toISOString().slice(0, 16);
}

function row(receivedBytes: number): UsageRow {
  const counters = { receivedBytes, sentBytes: 0, connections: 0, requests: 0 };
  return { service: 'u1', tenant: 'shop', namespace: 'shop', name: 'web', counters };
}

function seedOf(...rows: UsageRow[]): UsageSeed {
  return { months: [{ month: '2026-03', rows }], bases: [] };
}
