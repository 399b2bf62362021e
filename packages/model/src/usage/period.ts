import type { UsagePeriod } from './report.ts';

/** Returns the whole minutes since the epoch at `now` (milliseconds since the epoch). */
export function minuteOf(now: number): number {
  return Math.floor(now / 60_000);
}

/** Returns the periods (UTC) that contain a minute (whole minutes since the epoch). */
export function periodsOf(minute: number): Record<'minute' | 'hour' | 'day' | 'month', UsagePeriod> {
  const { year, month, day } = dateOf(Math.floor(minute / 1440));
  const monthText = `${year.toString().padStart(4, '0')}-${twoDigits(month)}`;
  const dayText = `${monthText}-${twoDigits(day)}`;
  const hourText = `${dayText}T${twoDigits(Math.floor((minute % 1440) / 60))}`;
  return { minute: `${hourText}:${twoDigits(minute % 60)}`, hour: hourText, day: dayText, month: monthText };
}

/** Returns the month (UTC) of `now` (milliseconds since the epoch), as `YYYY-MM`. */
export function monthOf(now: number): UsagePeriod {
  return periodsOf(minuteOf(now)).month;
}

/** Returns the day (UTC) of `now` (milliseconds since the epoch), as `YYYY-MM-DD`. */
export function dayOf(now: number): UsagePeriod {
  return periodsOf(minuteOf(now)).day;
}

/** Returns `now` (milliseconds since the epoch) in whole seconds (UTC), as `YYYY-MM-DDThh:mm:ssZ`. */
export function timestampOf(now: number): string {
  return `${periodsOf(minuteOf(now)).minute}:${twoDigits(Math.floor(now / 1000) % 60)}Z`;
}

/** Returns when the next month (UTC) begins, in milliseconds since the epoch. */
export function startOfNextMonth(now: number): number {
  const month = monthOf(now);
  let day = Math.floor(now / DAY_MS);
  while (periodsOf(day * 1440).month === month) day += 1;
  return day * DAY_MS;
}

const DAY_MS = 86_400_000;

function twoDigits(value: number): string {
  return value.toString().padStart(2, '0');
}

/** Converts a number of days since 1970-01-01 to a Gregorian date (H. Hinnant, chrono-compatible low-level date algorithms). */
function dateOf(days: number): { year: number; month: number; day: number } {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153);
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1,
  };
}
