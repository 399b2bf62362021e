import { add, type Counters, type Period, ZERO } from '@weir/model';
import type { UsageStore } from '@weir/store';
import { periodsUntil, type SeriesStep } from './series.ts';

export interface SeriesItem extends Counters {
  readonly period: Period;
}

/** What a tenant used in each of the last periods; those without traffic count zero. */
export async function tenantSeries(
  usage: UsageStore,
  tenant: string,
  { step, now }: { readonly step: SeriesStep; readonly now: number },
): Promise<SeriesItem[]> {
  const shown = periodsUntil(now, step);
  const used = new Set(await usage.periods(tenant, step));
  return Promise.all(
    shown.map(async (period) => ({ period, ...(used.has(period) ? await usedIn(usage, tenant, period) : ZERO) })),
  );
}

async function usedIn(usage: UsageStore, tenant: string, period: Period): Promise<Counters> {
  const rows = await usage.rows(period, tenant);
  return rows.reduce((total, row) => add(total, row.counters), ZERO);
}
