import { type Counters, MINUTES_PER_POINT, minuteOf, periodsOf, type UsagePeriod, ZERO_COUNTERS } from '@weir/model';
import type { UsageStore } from '@weir/store';

export interface SeriesItem extends Counters {
  readonly period: UsagePeriod;
}

/** Resolves with the usage of a tenant in each period of the graph, ascending. Periods without traffic have zero counters. */
export async function readTenantSeries(
  usage: UsageStore,
  tenant: string,
  { step, now }: { readonly step: SeriesStep; readonly now: number },
): Promise<SeriesItem[]> {
  const until = minuteOf(now) + 1;
  const from = until - SERIES_POINTS[step] * MINUTES_PER_POINT[step];
  const points = await usage.series({ tenant, length: step, from, until });
  const countersByPeriod = new Map(points.map(({ minute, counters }) => [periodsOf(minute)[step], counters]));
  return seriesPeriodsFor(now, step).map((period) => ({ period, ...(countersByPeriod.get(period) ?? ZERO_COUNTERS) }));
}

export const SERIES_STEPS = ['minute', 'hour', 'day'] as const;
export type SeriesStep = (typeof SERIES_STEPS)[number];

/** Number of periods in a series. A series covers one hour, two days or 31 days. */
const SERIES_POINTS: Readonly<Record<SeriesStep, number>> = { minute: 60, hour: 48, day: 31 };

/** Returns the periods of a graph (UTC), ascending. The last period contains `now` (milliseconds since the epoch). */
export function seriesPeriodsFor(now: number, step: SeriesStep): readonly UsagePeriod[] {
  const count = SERIES_POINTS[step];
  const last = minuteOf(now);
  return Array.from(
    { length: count },
    (_, index) => periodsOf(last - (count - 1 - index) * MINUTES_PER_POINT[step])[step],
  );
}
