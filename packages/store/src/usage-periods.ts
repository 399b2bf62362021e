import { periodsOf, type UsagePeriod } from '@weir/model/data-plane';

export const PERIOD_LENGTHS = ['minute', 'hour', 'day', 'month'] as const;
export type PeriodLength = (typeof PERIOD_LENGTHS)[number];

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const LENGTH_MS = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS };
/** How long usage is kept after the end of its period; months are kept for ever. */
const RETENTION_MS = { minute: 2 * HOUR_MS, hour: 8 * DAY_MS, day: 400 * DAY_MS };

/** A period that something of a minute is added to, and when it may be forgotten (milliseconds since the epoch; null: never). */
export interface KeptPeriod {
  readonly length: PeriodLength;
  readonly period: UsagePeriod;
  readonly keptUntil: number | null;
}

/** The periods that hold a minute (whole minutes since the epoch). */
export function keptPeriodsFor(minute: number): readonly KeptPeriod[] {
  const periods = periodsOf(minute);
  return PERIOD_LENGTHS.map((length) => {
    if (length === 'month') return { length, period: periods.month, keptUntil: null };
    const end = (Math.floor((minute * MINUTE_MS) / LENGTH_MS[length]) + 1) * LENGTH_MS[length];
    return { length, period: periods[length], keptUntil: end + RETENTION_MS[length] };
  });
}

/**
 * The periods of one length that may hold something at `now` (milliseconds since the epoch), ascending; a few in the future too,
 * because the clocks of proxies differ. Not for months, which are without end.
 */
export function periodsKeptAt(now: number, length: Exclude<PeriodLength, 'month'>): readonly UsagePeriod[] {
  const step = LENGTH_MS[length];
  const last = Math.floor(now / step) + 2;
  const count = RETENTION_MS[length] / step + 4;
  const starts = Array.from({ length: count }, (_, index) => last - count + 1 + index);
  return starts.map((start) => periodsOf((start * step) / MINUTE_MS)[length]);
}

/** The length of a period, read off its form. */
export function lengthOf(period: UsagePeriod): PeriodLength {
  if (period.length === 7) return 'month';
  if (period.length === 10) return 'day';
  return period.length === 13 ? 'hour' : 'minute';
}

/** When the usage of a period may be forgotten (milliseconds since the epoch; null: never). */
export function keptUntil(period: UsagePeriod): number | null {
  const length = lengthOf(period);
  if (length === 'month') return null;
  const start = Date.parse({ day: `${period}T00:00Z`, hour: `${period}:00Z`, minute: `${period}Z` }[length]);
  return start + LENGTH_MS[length] + RETENTION_MS[length];
}
