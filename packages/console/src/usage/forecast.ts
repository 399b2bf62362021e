import { dayOf, monthOf, startOfNextMonth, type UsagePeriod, type UsageRow } from '@weir/model';
import type { UsageStore } from '@weir/store';

const DAY_MS = 86_400_000;
const FORECAST_DAYS = 7;

/** The usage of one day (UTC). */
export interface DayUsage {
  readonly day: UsagePeriod;
  readonly rows: readonly UsageRow[];
}

/** Reads the days from which `forecastsFor` computes forecasts: today and up to six days before, as far as they are in this month. */
export async function readForecastDays(usage: Pick<UsageStore, 'rows'>, now: number): Promise<readonly DayUsage[]> {
  const days = Array.from({ length: FORECAST_DAYS }, (_, age) => now - age * DAY_MS);
  const inMonth = days.filter((time) => monthOf(time) === monthOf(now)).map(dayOf);
  return Promise.all(inMonth.map(async (day) => ({ day, rows: await usage.rows(day) })));
}

/**
 * Returns the bytes that each tenant will have received and sent at the end of this month, if the rest of the month is like `days`. A tenant
 * whose usage of this month began less than 24 hours ago has no forecast. `month` is the usage of this month, and `now` is in milliseconds
 * since the epoch.
 */
export function forecastsFor(
  month: readonly UsageRow[],
  days: readonly DayUsage[],
  now: number,
): ReadonlyMap<string, number> {
  const forecasts = new Map<string, number>();
  const bytesByDay = days.map(({ day, rows }) => ({ day, bytes: bytesByTenant(rows) }));
  const firstDay = days.map(({ day }) => day).sort()[0] ?? dayOf(now);
  for (const [tenant, used] of bytesByTenant(month)) {
    const byDay = bytesByDay.map(({ day, bytes }) => ({ day, bytes: bytes.get(tenant) ?? 0 }));
    const recent = byDay.reduce((sum, { bytes }) => sum + bytes, 0);
    const usedDays = byDay.filter(({ bytes }) => bytes > 0).map(({ day }) => day);
    const begin = recent < used ? firstDay : (usedDays.sort()[0] ?? firstDay);
    const elapsed = now - Date.parse(`${begin}T00:00:00Z`);
    if (elapsed >= DAY_MS) forecasts.set(tenant, Math.round(used + (recent / elapsed) * (startOfNextMonth(now) - now)));
  }
  return forecasts;
}

function bytesByTenant(rows: readonly UsageRow[]): Map<string, number> {
  const bytes = new Map<string, number>();
  for (const { tenant, counters } of rows)
    bytes.set(tenant, (bytes.get(tenant) ?? 0) + counters.receivedBytes + counters.sentBytes);
  return bytes;
}
