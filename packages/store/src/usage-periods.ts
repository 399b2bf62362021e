// The periods of the ledger. Months are kept forever. Minutes, hours and days are the points of series, which are stored in blocks.
import { KEPT_POINTS, MINUTES_PER_POINT, periodsOf, type SeriesLength, type UsagePeriod } from '@weir/model/data-plane';

export type PeriodLength = SeriesLength | 'month';

const MINUTE_MS = 60_000;

/**
 * The number of points in a block. All points of a block expire together, when the retention of the last point ends. `points.lua` has the
 * same number.
 */
export const POINTS_PER_BLOCK = 120;

/** A point of a series: the whole minutes, hours or days since the Unix epoch. */
export interface PointPosition {
  readonly length: SeriesLength;
  readonly index: number;
}

/** Returns the position of the point that contains `minute` (whole minutes since the Unix epoch). */
export function pointAt(length: SeriesLength, minute: number): PointPosition {
  return { length, index: Math.floor(minute / MINUTES_PER_POINT[length]) };
}

export function blockOf({ index }: PointPosition): number {
  return Math.floor(index / POINTS_PER_BLOCK);
}

/** Returns the end of a block's retention in milliseconds since the Unix epoch. */
export function blockKeptUntil(length: SeriesLength, block: number): number {
  return ((block + 1) * POINTS_PER_BLOCK + KEPT_POINTS[length]) * MINUTES_PER_POINT[length] * MINUTE_MS;
}

/**
 * Returns all blocks of one length that may have usage at `now` (milliseconds since the Unix epoch), ascending. Includes a future block,
 * because the clocks of proxies differ.
 */
export function blocksKeptAt(now: number, length: SeriesLength): readonly number[] {
  const last = Math.floor(now / MINUTE_MS / MINUTES_PER_POINT[length] / POINTS_PER_BLOCK) + 1;
  const count = Math.ceil(KEPT_POINTS[length] / POINTS_PER_BLOCK) + 2;
  return Array.from({ length: count }, (_, index) => last - count + 1 + index);
}

/** Returns the period (UTC) of a point. */
export function periodAt({ length, index }: PointPosition): UsagePeriod {
  return periodsOf(index * MINUTES_PER_POINT[length])[length];
}

/** Returns the position of a minute, hour or day such as `2026-11-22T17:05`; undefined for a month. */
export function positionOf(period: UsagePeriod): PointPosition | undefined {
  const length = lengthOf(period);
  if (length === 'month') return undefined;
  const start = Date.parse({ day: `${period}T00:00Z`, hour: `${period}:00Z`, minute: `${period}Z` }[length]);
  return pointAt(length, start / MINUTE_MS);
}

/** Returns the month that contains a period. */
export function monthOfPeriod(period: UsagePeriod): UsagePeriod {
  return period.slice(0, 'YYYY-MM'.length);
}

/** Returns the length of a period such as `2026-11`, `2026-11-22`, `2026-11-22T17` or `2026-11-22T17:05`. */
function lengthOf(period: UsagePeriod): PeriodLength {
  if (period.length === 7) return 'month';
  if (period.length === 10) return 'day';
  return period.length === 13 ? 'hour' : 'minute';
}
