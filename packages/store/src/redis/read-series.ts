// Reads series of the ledger. A call reads at most `BLOCKS_PER_CALL` blocks or `POINTS_PER_CALL` points, so that no call delays the calls of
// other processes in Redis.
import { type Counters, MINUTES_PER_POINT, type SeriesLength, type UsagePeriod } from '@weir/model/data-plane';
import type { SeriesPoint, SeriesQuery } from '../usage-contract.ts';
import { blockOf, blocksKeptAt, POINTS_PER_BLOCK, type PointPosition, periodAt } from '../usage-periods.ts';
import { runPipeline } from './connection/pipeline.ts';
import type { SeriesOwner, UsageKeys } from './keys.ts';
import type { UsageConnection } from './redis-usage.ts';
import { decodePoint, decodeReasons } from './series-codec.ts';

const BLOCKS_PER_CALL = 30;
const POINTS_PER_CALL = 500;

export interface SeriesSource {
  readonly connection: UsageConnection;
  readonly usage: UsageKeys;
}

/** See `UsageStore.series`. Reads only blocks that may exist at `now` (milliseconds since the Unix epoch). */
export async function readSeries(source: SeriesSource, query: SeriesQuery, now: number): Promise<SeriesPoint[]> {
  const { connection, usage } = source;
  const { tenant, service = '', length, from, until } = query;
  const minutes = MINUTES_PER_POINT[length];
  const first = Math.floor(from / minutes / POINTS_PER_BLOCK);
  const last = Math.floor(until / minutes / POINTS_PER_BLOCK);
  const blocks = blocksKeptAt(now, length).filter((block) => block >= first && block <= last);
  const points: SeriesPoint[] = [];
  let reasons: ReadonlyMap<number, string> | undefined;
  for (const page of pagesOf(blocks, BLOCKS_PER_CALL)) {
    const replies = await connection.call((redis) =>
      runPipeline(redis, (all) => {
        for (const block of page) all.hgetallBuffer(usage.series({ tenant, service }, length, block));
        return all;
      }),
    );
    if (replies.some((reply) => Object.keys(reply as object).length > 0)) reasons ??= await readReasons(source);
    for (const [index, block] of page.entries()) {
      for (const [offset, point] of Object.entries(replies[index] as Record<string, Buffer>)) {
        const minute = (block * POINTS_PER_BLOCK + Number(offset)) * minutes;
        if (minute < from || minute >= until) continue;
        points.push({ minute, counters: decodePoint(point, reasons ?? new Map()) });
      }
    }
  }
  return points.sort((a, b) => a.minute - b.minute);
}

/** Returns the point of each owner at one position. A point without usage is undefined. */
export async function readPoints(
  source: SeriesSource,
  owners: readonly SeriesOwner[],
  position: PointPosition,
): Promise<readonly (Counters | undefined)[]> {
  const { connection, usage } = source;
  if (owners.length === 0) return [];
  const offset = String(position.index % POINTS_PER_BLOCK);
  const reasons = await readReasons(source);
  const points: (Counters | undefined)[] = [];
  for (const page of pagesOf(owners, POINTS_PER_CALL)) {
    const replies = await connection.call((redis) =>
      runPipeline(redis, (all) => {
        for (const owner of page) all.hgetBuffer(usage.series(owner, position.length, blockOf(position)), offset);
        return all;
      }),
    );
    for (const reply of replies as (Buffer | null)[])
      points.push(reply === null ? undefined : decodePoint(reply, reasons));
  }
  return points;
}

/** Returns the minutes, hours or days in which a tenant has usage, ascending. */
export async function readPeriods(
  { connection, usage }: SeriesSource,
  tenant: string,
  { length, now }: { readonly length: SeriesLength; readonly now: number },
): Promise<UsagePeriod[]> {
  const blocks = blocksKeptAt(now, length);
  const replies = await connection.call((redis) =>
    runPipeline(redis, (all) => {
      for (const block of blocks) all.hkeys(usage.series({ tenant, service: '' }, length, block));
      return all;
    }),
  );
  const indexes = blocks.flatMap((block, index) =>
    (replies[index] as string[]).map((offset) => block * POINTS_PER_BLOCK + Number(offset)),
  );
  return indexes.sort((a, b) => a - b).map((index) => periodAt({ length, index }));
}

async function readReasons({ connection, usage }: SeriesSource): Promise<ReadonlyMap<number, string>> {
  return decodeReasons(await connection.call((redis) => redis.hgetall(usage.reasons)));
}

export function pagesOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, page) =>
    items.slice(page * size, (page + 1) * size),
  );
}
