import { monthOf, type UsagePeriod } from '@weir/model';

/** The month of `now` (milliseconds since the epoch) and the one before, in UTC. */
export function recentMonths(now: number): readonly [present: UsagePeriod, last: UsagePeriod] {
  const present = monthOf(now);
  const [year = 0, month = 0] = present.split('-').map(Number);
  const last = month === 1 ? `${year - 1}-12` : `${year}-${String(month - 1).padStart(2, '0')}`;
  return [present, last];
}
