import { periodsOf, type UsagePeriod } from '@weir/model/data-plane';

export const PERIOD_LENGTHS = ['minute', 'hour', 'day', 'month'] as const;
export type PeriodLength = (typeof PERIOD_LENGTHS)[number];

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const LENGTH_MS = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS };
/** How long usage is kept after its period has ended. The object has no field for months, because months are kept forever. */
const RETENTION_MS = { minute: 2 * HOUR_MS, hour: 8 * DAY_MS, day: 400 * DAY_MS };

/** A period of usage and the end of its retention. */
export interface KeptPeriod {
  readonly length: PeriodLength;
  readonly period: UsagePeriod;
  /** The end of the retention in milliseconds since the Unix epoch; null if the period is kept forever. */
  readonly keptUntil: number | null;
}

/** Returns the minute, hour, day and month that contain `minute` (whole minutes since the Unix epoch). */
export function keptPeriodsFor(minute: number): readonly KeptPeriod[] {
  const periods = periodsOf(minute);
  return PERIOD_LENGTHS.map((length) => {
    if (length === 'month') return { length, period: periods.month, keptUntil: null };
    const end = (Math.floor((minute * MINUTE_MS) / LENGTH_MS[length]) + 1) * LENGTH_MS[length];
    return { length, period: periods[length], keptUntil: end + RETENTION_MS[length] };
  });
}

/**
 * Returns all periods of one length that may have usage at `now` (milliseconds since the Unix epoch), ascending. Includes two future
 * periods, because the clocks of proxies differ. Months are excluded, because they are kept forever.
 */
export function periodsKeptAt(now: number, length: Exclude<PeriodLength, 'month'>): readonly UsagePeriod[] {
  const step = LENGTH_MS[length];
  const last = Math.floor(now / step) + 2;
  const count = RETENTION_MS[length] / step + 4;
  const starts = Array.from({ length: count }, (_, index) => last - count + 1 + index);
  return starts.map((start) => periodsOf((start * step) / MINUTE_MS)[length]);
}

/** Returns the length of a period such as `2026-11`, `2026-11-22`, `2026-11-22T17` or `2026-11-22T17:05`. */
export function lengthOf(period: UsagePeriod): PeriodLength {
  if (period.length === 7) return 'month';
  if (period.length === 10) return 'day';
  return period.length === 13 ? 'hour' : 'minute';
}

/**
 * Returns the end of a period's retention in milliseconds since the Unix epoch, or null if the period is kept forever.
 */
export function keptUntil(period: UsagePeriod): number | null {
  const length = lengthOf(period);
  if (length === 'month') return null;
  const start = Date.parse({ day: `${period}T00:00Z`, hour: `${period}:00Z`, minute: `${period}Z` }[length]);
  return start + LENGTH_MS[length] + RETENTION_MS[length];
}
