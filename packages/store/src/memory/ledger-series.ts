// The series of the memory store's ledger.
import {
  addCounters,
  type Counters,
  MINUTES_PER_POINT,
  SERIES_LENGTHS,
  type SeriesLength,
  ZERO_COUNTERS,
} from '@weir/model/data-plane';
import type { SeriesPoint, SeriesQuery } from '../usage-contract.ts';
import { blockKeptUntil, blockOf, POINTS_PER_BLOCK, type PointPosition } from '../usage-periods.ts';

/** The series of a Service, or of a tenant if `service` is ''. Points by `PointPosition.index`. */
export interface Series extends Readonly<Record<SeriesLength, Map<number, Counters>>> {
  readonly tenant: string;
  readonly service: string;
}

/** Series by `seriesKey`. */
export type SeriesTable = Map<string, Series>;

export const seriesKey = ({ tenant, service }: Pick<Series, 'tenant' | 'service'>): string => `${service}/${tenant}`;

/** Adds counters to a point of the Service's series and of its tenant's series. */
export function addToServiceAndTenant(
  table: SeriesTable,
  owner: Pick<Series, 'tenant' | 'service'>,
  { position, counters }: { readonly position: PointPosition; readonly counters: Counters },
): void {
  addToPoint(seriesFor(table, owner), position, counters);
  addToPoint(seriesFor(table, { tenant: owner.tenant, service: '' }), position, counters);
}

export function addToPoint(series: Series, { length, index }: PointPosition, counters: Counters): void {
  series[length].set(index, addCounters(series[length].get(index) ?? ZERO_COUNTERS, counters));
}

export function seriesFor(table: SeriesTable, { tenant, service }: Pick<Series, 'tenant' | 'service'>): Series {
  const key = seriesKey({ tenant, service });
  const known = table.get(key);
  if (known !== undefined) return known;
  const series: Series = { tenant, service, minute: new Map(), hour: new Map(), day: new Map() };
  table.set(key, series);
  return series;
}

/** See `UsageStore.series`. */
export function pointsOf(
  table: SeriesTable,
  { tenant, service = '', length, from, until }: SeriesQuery,
): SeriesPoint[] {
  const points = table.get(seriesKey({ tenant, service }))?.[length] ?? [];
  return Array.from(points, ([index, counters]) => ({ minute: index * MINUTES_PER_POINT[length], counters }))
    .filter(({ minute }) => minute >= from && minute < until)
    .sort((a, b) => a.minute - b.minute);
}

/** Adds the points of `source` to `target`, and deletes `source`. */
export function foldSeries(table: SeriesTable, source: Series, target: Series): void {
  for (const length of SERIES_LENGTHS) {
    for (const [index, counters] of source[length]) addToPoint(target, { length, index }, counters);
  }
  table.delete(seriesKey(source));
}

/** Deletes the points of blocks whose retention has ended at `now` (milliseconds since the Unix epoch). */
export function removeExpiredPoints(table: SeriesTable, now: number): void {
  for (const [key, series] of table) {
    for (const length of SERIES_LENGTHS) {
      for (const index of series[length].keys()) if (!isKept({ length, index }, now)) series[length].delete(index);
    }
    if (SERIES_LENGTHS.every((length) => series[length].size === 0)) table.delete(key);
  }
}

/** Reports whether the retention of a point has not ended at `now` (milliseconds since the Unix epoch). */
export function isKept(position: PointPosition, now: number): boolean {
  return blockKeptUntil(position.length, blockOf(position)) > now;
}

/** Returns a number that changes whenever the retention of a block ends. */
export function expiryStepAt(now: number): number {
  return Math.floor(now / (POINTS_PER_BLOCK * MINUTES_PER_POINT.minute * 60_000));
}
