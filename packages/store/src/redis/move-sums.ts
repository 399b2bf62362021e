// Proxies of an earlier version write the usage of minutes, hours and days to sums, as they do for months, and not to series. The leader
// moves these sums to the series.
import { MINUTES_PER_POINT, periodsOf, SERIES_LENGTHS, type UsagePeriod } from '@weir/model/data-plane';
import { blockKeptUntil, blockOf, POINTS_PER_BLOCK, positionOf } from '../usage-periods.ts';
import { runPipeline } from './connection/pipeline.ts';
import { pagesOf, type SeriesSource } from './read-series.ts';
import { counterSuffixesIn, expiryArg, servicesIn } from './usage-codec.ts';

/** How many minutes, hours and days earlier versions keep, including two in the future. */
const EARLIER_KEPT = { minute: 123, hour: 195, day: 403 };
const SERVICES_PER_CALL = 50;

/** Moves all sums of a tenant that earlier versions have written. `now` is in milliseconds since the Unix epoch. */
export async function moveSums(source: SeriesSource, tenant: string, now: number): Promise<void> {
  const { connection, usage } = source;
  const periods = earlierPeriodsAt(now);
  const keys = periods.map((period) => usage.sum(tenant, period));
  // Checks all keys with one command first, because a fleet without earlier versions has no such sums.
  if ((await connection.call((redis) => redis.exists(...keys))) === 0) return;
  const exists = await connection.call((redis) =>
    runPipeline(redis, (all) => keys.reduce((pipeline, key) => pipeline.exists(key), all)),
  );
  for (const [index, period] of periods.entries()) if (exists[index] === 1) await moveSum(source, tenant, period);
}

function earlierPeriodsAt(now: number): UsagePeriod[] {
  return SERIES_LENGTHS.flatMap((length) => {
    const minutes = MINUTES_PER_POINT[length];
    const last = Math.floor(now / 60_000 / minutes) + 2;
    return Array.from({ length: EARLIER_KEPT[length] }, (_, index) => periodsOf((last - index) * minutes)[length]);
  });
}

async function moveSum({ connection, usage }: SeriesSource, tenant: string, period: UsagePeriod): Promise<void> {
  const position = positionOf(period);
  if (position === undefined) return;
  const { length, index } = position;
  const block = blockOf(position);
  const sum = usage.sum(tenant, period);
  const fields = await connection.call((redis) => redis.hkeys(sum));
  const suffixes = counterSuffixesIn(fields);
  const blockFor = (service: string): string => usage.series({ tenant, service }, length, block);
  for (const services of pagesOf([...servicesIn(fields)], SERVICES_PER_CALL)) {
    await connection.run(
      'move-sum',
      [sum, usage.reasons, blockFor(''), ...services.map(blockFor)],
      [index % POINTS_PER_BLOCK, expiryArg(blockKeptUntil(length, block)), suffixes.length, ...suffixes, ...services],
    );
  }
}
