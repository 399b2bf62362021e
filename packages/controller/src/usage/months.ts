import { monthOf, type Period } from '@weir/model';

/** The month of `now` (milliseconds since the epoch) and the one before, in UTC. */
export function recentMonths(now: number): readonly [present: Period, last: Period] {
  const present = monthOf(now);
  const [year = 0, month = 0] = present.split('-').map(Number);
  const last = month === 1 ? `${year - 1}-12` : `${year}-${String(month - 1).padStart(2, '0')}`;
  return [present, last];
}
