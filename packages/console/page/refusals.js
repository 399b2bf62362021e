import { count } from './format.js';

// Text about refused clients. A count by reason has the form `{ reason: number }`, and is absent if no client was refused.

export function totalOf(refused = {}) {
  return Object.values(refused).reduce((sum, number) => sum + number, 0);
}

/** Returns the reasons, the most frequent reason first, such as `1,234 rate-limit, 3 source-range`. */
export function reasonsText(refused = {}) {
  const byCount = Object.entries(refused).sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  return byCount.map(([reason, number]) => `${count(number)} ${reason}`).join(', ');
}

/** Returns the clients that are being refused, such as `3/s (2 rate-limit, 1 source-range)`; empty if there are none. */
export function refusedNowText(refusedPerSecond) {
  const total = totalOf(refusedPerSecond);
  return total === 0 ? '' : `${count(total)}/s (${reasonsText(refusedPerSecond)})`;
}

/** Returns the refusals of this month, such as `1,237 this month: 1,234 rate-limit, 3 source-range`; empty if there are none. */
export function refusedThisMonthText(refused) {
  const total = totalOf(refused);
  return total === 0 ? '' : `${count(total)} this month: ${reasonsText(refused)}`;
}
