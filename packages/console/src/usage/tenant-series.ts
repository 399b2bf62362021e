import { addCounters, type Counters, minuteOf, periodsOf, type UsagePeriod, ZERO_COUNTERS } from '@weir/model';
import type { UsageStore } from '@weir/store';

export interface SeriesItem extends Counters {
  readonly period: UsagePeriod;
}

/** What a tenant used in each of the last periods; those without traffic count zero. */
export async function readTenantSeries(
  usage: UsageStore,
  tenant: string,
  { step, now }: { readonly step: SeriesStep; readonly now: number },
): Promise<SeriesItem[]> {
  const shown = seriesPeriodsFor(now, step);
  const used = new Set(await usage.periods(tenant, step));
  return Promise.all(
    shown.map(async (period) => ({
      period,
      ...(used.has(period) ? await countersIn(usage, tenant, period) : ZERO_COUNTERS),
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

/** The last hour, two days, or month. */
const SERIES_RANGES: Readonly<Record<SeriesStep, SeriesRange>> = {
  minute: { minutes: 1, count: 60 },
  hour: { minutes: 60, count: 48 },
  day: { minutes: 1_440, count: 31 },
};

/** The periods that a graph shows, ascending; the last one holds `now` (milliseconds since the epoch). UTC. */
export function seriesPeriodsFor(now: number, step: SeriesStep): readonly UsagePeriod[] {
  const { minutes, count } = SERIES_RANGES[step];
  const last = minuteOf(now);
  return Array.from({ length: count }, (_, index) => periodsOf(last - (count - 1 - index) * minutes)[step]);
}
