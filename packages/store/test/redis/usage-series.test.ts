// What the series take in Redis, and the sums of earlier versions.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  addCounters,
  type Counters,
  countersFrom,
  minuteOf,
  periodsOf,
  SERIES_LENGTHS,
  ZERO_COUNTERS,
} from '@weir/model';
import { requireProgram } from '@weir/tools';
import { keysFor, type UsageKeys } from '../../src/redis/keys.ts';
import { report } from '../contract/sample-data.ts';
import { useSharedRedis } from './fixtures/shared-redis.ts';

const NOW = minuteOf(Date.now());
const DAY = 1_440;
const SERVICE = '6f1c2d3e-0000-4a5b-8c7d-000000000001';

describe('the series in Redis', requireProgram('redis'), () => {
  const { redis, fixture } = useSharedRedis();

  test('take at most 150 KB for a Service with requests in each minute of two years, and nothing for an idle Service', async () => {
    await using world = fixture();
    const { usage } = await world.connect();
    await usage.seed({ months: [], bases: [] });
    const { slots } = report([[NOW, 1]], { service: SERVICE });
    const points = yearsOfPoints();
    for (let from = 0; from < points.length; from += 1_000) {
      const page = slots.map((slot) => ({ ...slot, points: points.slice(from, from + 1_000) }));
      await usage.flush({ node: 'n1', life: 1, slots: page });
    }
    const bytes = await bytesOf(`weir:{${world.fleet}}:usage:series:shop:${SERVICE}:*`);
    assert.ok(bytes > 100_000 && bytes < 150_000, `${bytes} bytes`);
    const days = await usage.series({ tenant: 'shop', service: SERVICE, length: 'day', from: 0, until: NOW + 1 });
    assert.ok(days.length >= 731);
    const sum = days.slice(-700).reduce((total, { counters }) => addCounters(total, counters), ZERO_COUNTERS);
    assert.ok(sum.receivedBytes > 0);
  });

  test('count refusals for more than 100 reasons as refusals for other reasons', async () => {
    await using world = fixture();
    const { usage } = await world.connect();
    await usage.seed({ months: [], bases: [] });
    const refused = Object.fromEntries(Array.from({ length: 130 }, (_, index) => [`reason-${index}`, 2]));
    const { slots, ...rest } = report([[NOW, 1]]);
    const points = [{ minute: NOW, counters: { ...ZERO_COUNTERS, refused } }];
    await usage.flush({ ...rest, slots: slots.map((slot) => ({ ...slot, points })) });
    const [point] = await usage.series({ tenant: 'shop', length: 'minute', from: NOW, until: NOW + 1 });
    assert.equal(point?.counters.refused?.other, 60);
    assert.equal(Object.keys(point.counters.refused).length, 101);
  });

  test('get the minutes, hours and days that proxies of an earlier version have counted, once', async () => {
    await using world = fixture();
    const { usage } = await world.connect();
    await usage.seed({ months: [], bases: [] });
    const keys = keysFor(world.fleet).usage;
    await usage.flush(report([[NOW, 100]]));
    await writeAsEarlierVersion(keys, NOW, { 'u1:r': 7, 'u1:x.rate-limit': 3, 'u2:r': 20 });
    await writeAsEarlierVersion(keys, NOW - 300 * DAY, { 'u1:r': 1 });
    for (let time = 0; time < 2; time += 1) await usage.foldGoneServices(new Set(['u1', 'u2']), Date.now());
    for (const length of SERIES_LENGTHS) {
      const last = async (service?: string): Promise<Counters | undefined> =>
        (await usage.series({ tenant: 'shop', service, length, from: 0, until: NOW + 1 })).at(-1)?.counters;
      assert.equal((await last('u1'))?.receivedBytes, 107, length);
      assert.deepEqual((await last('u1'))?.refused, { 'rate-limit': 3 });
      assert.equal((await last('u2'))?.receivedBytes, 20);
      assert.equal((await last())?.receivedBytes, 127);
      assert.equal(await redis().exists(keys.sum('shop', periodsOf(NOW)[length])), 0);
    }
    const [first] = await usage.series({ tenant: 'shop', length: 'day', from: 0, until: NOW });
    assert.equal(first?.minute, Math.floor(NOW / DAY - 300) * DAY);
    assert.deepEqual(
      (await usage.rows(periodsOf(NOW).day)).map(({ service, counters }) => [service, counters.receivedBytes]),
      [
        ['u1', 107],
        ['u2', 20],
      ],
    );
  });

  /** Adds usage as the script of an earlier version did: to one sum for each length. */
  async function writeAsEarlierVersion(keys: UsageKeys, minute: number, counts: Record<string, number>): Promise<void> {
    for (const period of Object.values(periodsOf(minute)))
      for (const [field, count] of Object.entries(counts))
        await redis().hincrby(keys.sum('shop', period), field, count);
    await redis().hset(keys.names, 'u2', 'shop/api');
  }

  async function bytesOf(pattern: string): Promise<number> {
    const keys = await redis().keys(pattern);
    const sizes = await Promise.all(keys.map((key) => redis().memory('USAGE', key, 'SAMPLES', 0)));
    return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  }
});

/** Returns cumulative points of a Service with 70 Mbit/s and 60 requests per second: all minutes, hours and days that are kept. */
function yearsOfPoints(): { minute: number; counters: Counters }[] {
  const minutes = new Set<number>();
  for (let day = 730; day > 60; day -= 1) minutes.add(NOW - day * DAY);
  for (let hour = 60 * 24; hour > 48; hour -= 1) minutes.add(NOW - hour * 60);
  for (let minute = 2 * DAY; minute >= 0; minute -= 1) minutes.add(NOW - minute);
  let counters = ZERO_COUNTERS;
  return [...minutes].map((minute, index, all) => {
    const scale = Math.min(DAY, (all[index + 1] ?? minute + 1) - minute);
    const [requests, errors] = [3_600 * scale + (index % 997), 2 * scale + (index % 7)];
    const values = [
      40_000_000 * scale + index,
      500_000_000 * scale + index,
      200 * scale,
      requests,
      requests - errors,
      0,
      errors,
    ];
    counters = addCounters(counters, countersFrom(values));
    return { minute, counters };
  });
}
