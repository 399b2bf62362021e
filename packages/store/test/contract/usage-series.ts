// Checks the series of the ledger: minutes, hours and days of Services and tenants.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Counters, minuteOf, SERIES_LENGTHS } from '@weir/model';
import type { SeriesQuery, UsageStore } from '../../src/contract.ts';
import { report } from './sample-data.ts';
import type { StoreUnderTest } from './store-fixture.ts';

const NOW = minuteOf(Date.now());
const DAY = 1_440;

export function usageSeriesContract(subject: StoreUnderTest): void {
  describe(`the series of the ledger of ${subject.name}`, () => {
    test('has a point per minute, hour and day, for the Service and for its tenant', async () => {
      await using world = await subject.open();
      const { usage } = await world.connect();
      await usage.seed({ months: [], bases: [] });
      const midnight = Math.floor(NOW / DAY) * DAY;
      await usage.flush(report([[midnight - 1, 100]], { service: 'u1' }));
      await usage.flush(report([[midnight - 1, 10]], { service: 'u2' }));
      await usage.flush(report([[midnight - 1, 1_000]], { service: 'u1', tenant: 'game' }));
      await usage.flush(
        report(
          [
            [midnight - 1, 150],
            [midnight, 175],
          ],
          { service: 'u1' },
        ),
      );
      for (const [length, minute] of [
        ['minute', midnight - 1],
        ['hour', midnight - 60],
        ['day', midnight - DAY],
      ] as const) {
        assert.deepEqual(await received(usage, { tenant: 'shop', length }), [
          [minute, 160],
          [midnight, 25],
        ]);
        assert.deepEqual(await received(usage, { tenant: 'shop', service: 'u1', length }), [
          [minute, 150],
          [midnight, 25],
        ]);
        assert.deepEqual(await received(usage, { tenant: 'shop', service: 'u2', length }), [[minute, 10]]);
        assert.deepEqual(await received(usage, { tenant: 'game', length }), [[minute, 1_000]]);
        assert.deepEqual(await received(usage, { tenant: 'nobody', length }), []);
      }
    });

    test('returns the points that begin in the range', async () => {
      await using world = await subject.open();
      const { usage } = await world.connect();
      await usage.seed({ months: [], bases: [] });
      const minutes = Array.from({ length: 400 }, (_, index) => NOW - 399 + index);
      await usage.flush(report(minutes.map((minute, index) => [minute, index + 1] as const)));
      const between = async (from: number, until: number): Promise<number[]> =>
        (await usage.series({ tenant: 'shop', length: 'minute', from, until })).map(({ minute }) => minute);
      assert.deepEqual(await between(NOW - 350, NOW - 10), minutes.slice(49, 389));
      assert.deepEqual(await between(NOW, NOW + 1), [NOW]);
      assert.deepEqual(await between(NOW, NOW), []);
      assert.deepEqual(await between(NOW + 1, NOW + 60), []);
    });

    test('has all counters of a point exactly, up to 2^53', async () => {
      await using world = await subject.open();
      const { usage } = await world.connect();
      await usage.seed({ months: [], bases: [] });
      const requestsByCodeClass = { '2xx': 127, '3xx': 128, '4xx': 0, '5xx': 16_384, none: 1 };
      const refused = { 'rate-limit': 300, constructor: 1 };
      const counters = {
        receivedBytes: Number.MAX_SAFE_INTEGER,
        sentBytes: 2 ** 52 + 1,
        connections: 0,
        requests: 16_640,
        requestsByCodeClass,
        refused,
      };
      await usage.flush(reportOf(counters));
      for (const length of SERIES_LENGTHS) {
        const [point] = await usage.series({ tenant: 'shop', service: 'u1', length, from: 0, until: NOW + 1 });
        assert.deepEqual(point?.counters, counters);
      }
    });

    test('counts each minute of an outage in its own minute, also if the report is repeated and a later report came first', async () => {
      await using world = await subject.open();
      const { usage } = await world.connect();
      await usage.seed({ months: [], bases: [] });
      const outage = report(Array.from({ length: 1_500 }, (_, index) => [NOW - 1_499 + index, index + 1] as const));
      await usage.flush(report([[NOW, 7]], { node: 'n2' }));
      for (let time = 0; time < 2; time += 1) await usage.flush(outage);
      const points = await received(usage, { tenant: 'shop', service: 'u1', length: 'minute' });
      assert.equal(points.length, 1_500);
      assert.ok(points.slice(0, -1).every(([, bytes]) => bytes === 1));
      assert.deepEqual(points.at(-1), [NOW, 8]);
      for (const length of ['hour', 'day'] as const)
        assert.equal(sumOf(await received(usage, { tenant: 'shop', length })), 1_507);
    });

    test('keeps minutes for two days, hours for 60 days, and days for two years', async () => {
      await using world = await subject.open();
      const { usage } = await world.connect();
      await usage.seed({ months: [], bases: [] });
      const ages = [2 * DAY - 1, 3 * DAY, 60 * DAY - 60, 66 * DAY, 730 * DAY, 860 * DAY];
      const points = ages.toReversed().map((age, index) => [NOW - age, 2 ** (index + 1) - 1] as const);
      await usage.flush(report(points));
      const ageOf = async (length: SeriesQuery['length']): Promise<number[]> => {
        const found = await received(usage, { tenant: 'shop', service: 'u1', length });
        return found.map(([, bytes]) => ages.toReversed()[Math.log2(bytes)] ?? 0);
      };
      assert.deepEqual(await ageOf('minute'), [2 * DAY - 1]);
      assert.deepEqual(await ageOf('hour'), [60 * DAY - 60, 3 * DAY, 2 * DAY - 1]);
      assert.deepEqual((await ageOf('day'))[0], 730 * DAY);
    });

    test('folds the series of a Service that is gone into those of other Services, and keeps the totals', async () => {
      await using world = await subject.open();
      const { usage } = await world.connect();
      await usage.seed({ months: [], bases: [] });
      const twoPoints = (bytes: number) => [[NOW - DAY, bytes] as const, [NOW, 2 * bytes] as const];
      await usage.flush(report(twoPoints(1), { service: 'gone1' }));
      await usage.flush(report(twoPoints(10), { service: 'gone2' }));
      await usage.flush(report(twoPoints(100), { service: 'kept' }));
      const lengths = SERIES_LENGTHS.map((length) => ({ tenant: 'shop', length }));
      const totals = await Promise.all(lengths.map((query) => received(usage, query)));
      for (const days of [0, 7]) await usage.foldGoneServices(new Set(['kept']), (NOW + days * DAY) * 60_000);
      assert.deepEqual(await Promise.all(lengths.map((query) => received(usage, query))), totals);
      for (const query of lengths) {
        const bytes = async (service: string): Promise<number[]> =>
          (await received(usage, { ...query, service })).map(([, each]) => each);
        assert.deepEqual(await bytes('gone1'), []);
        assert.deepEqual(await bytes('other.shop'), [11, 11]);
        assert.deepEqual(await bytes('kept'), [100, 100]);
      }
    });
  });
}

function reportOf(counters: Counters): ReturnType<typeof report> {
  const { slots, ...rest } = report([[NOW, 1]]);
  return { ...rest, slots: slots.map((slot) => ({ ...slot, points: [{ minute: NOW, counters }] })) };
}

/** Returns the start and the received bytes of all points of a series. */
async function received(
  usage: UsageStore,
  query: Omit<SeriesQuery, 'from' | 'until'>,
): Promise<(readonly [minute: number, receivedBytes: number])[]> {
  const points = await usage.series({ ...query, from: NOW - 900 * DAY, until: NOW + 1 });
  return points.map(({ minute, counters }) => [minute, counters.receivedBytes]);
}

function sumOf(points: readonly (readonly [unknown, number])[]): number {
  return points.reduce((sum, [, value]) => sum + value, 0);
}
