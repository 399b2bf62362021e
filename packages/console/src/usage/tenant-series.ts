import { addCounters, type Counters, type UsagePeriod, ZERO_COUNTERS } from '@weir/model';
import type { UsageStore } from '@weir/store';
import { type SeriesStep, seriesPeriodsFor } from './series.ts';

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
