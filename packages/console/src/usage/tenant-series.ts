import { addCounters, type Counters, minuteOf, periodsOf, type UsagePeriod, ZERO_COUNTERS } from '@weir/model';
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
  const periods = seriesPeriodsFor(now, step);
  const periodsWithTraffic = new Set(await usage.periods(tenant, step));
  return Promise.all(
    periods.map(async (period) => ({
      period,
      ...(periodsWithTraffic.has(period) ? await countersIn(usage, tenant, period) : ZERO_COUNTERS),
    })),
  );
}

async function countersIn(usage: UsageStore, tenant: string, period: UsagePeriod): Promise<Counters> {
  const rows = await usage.rows(period, tenant);
  return rows.reduce((total, row) => addCounters(total, row.counters), ZERO_COUNTERS);
}

export const SERIES_STEPS = ['minute', 'hour', 'day'] as const;
export type SeriesStep = (typeof SERIES_STEPS)[number];

interface SeriesRange {
  readonly minutes: number;
  readonly count: number;
}

/** Number of periods in a series, and minutes in a period, by step. A series covers one hour, two days or 31 days. */
const SERIES_RANGES: Readonly<Record<SeriesStep, SeriesRange>> = {
  minute: { minutes: 1, count: 60 },
  hour: { minutes: 60, count: 48 },
  day: { minutes: 1_440, count: 31 },
};

/** Returns the periods of a graph (UTC), ascending. The last period contains `now` (milliseconds since the epoch). */
export function seriesPeriodsFor(now: number, step: SeriesStep): readonly UsagePeriod[] {
  const { minutes, count } = SERIES_RANGES[step];
  const last = minuteOf(now);
  return Array.from({ length: count }, (_, index) => periodsOf(last - (count - 1 - index) * minutes)[step]);
}
