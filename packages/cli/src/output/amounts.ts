// Formats numbers and lists. Units are powers of 1,000, as is usual for networks and quotas.

import { CODE_CLASSES, compareText, type RefusalCounts, type RequestsByCodeClass } from '@weir/model';

const PREFIXES = ['', 'k', 'M', 'G', 'T', 'P'] as const;

/** Returns a count with its noun: `1 node`, `2 nodes`, `1,234 nodes`. */
export function pluralize(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** Maximum number of items of a list that a text shows. Users can print the whole list with `-o json`. */
export const MAX_LISTED_ITEMS = 10;

/** Joins up to `maxItems` items, and adds the number of further items: `a, b and 12 more`. */
export function joinList(items: readonly string[], maxItems: number = MAX_LISTED_ITEMS): string {
  if (items.length <= maxItems) return items.join(', ');
  return `${items.slice(0, maxItems).join(', ')} and ${items.length - maxItems} more`;
}

/** Returns a number of bytes as text: `0 B`, `999 B`, `1.5 MB`. */
export function bytesText(bytes: number): string {
  return `${scaled(bytes)}B`;
}

/** Returns a bit rate as text: `0 bit/s`, `12.4 Mbit/s`. */
export function bitRateText(bitsPerSecond: number): string {
  return `${scaled(bitsPerSecond)}bit/s`;
}

/** Returns a count as text: `0`, `0.3`, `1,234`. */
export function countText(count: number): string {
  return count !== 0 && Math.abs(count) < 10 && !Number.isInteger(count)
    ? count.toFixed(1)
    : Math.round(count).toLocaleString('en-US');
}

/** Returns the used part of a limit as text, such as `37 %`. Returns `100 %` for a limit of 0. */
export function percentText(used: number, limit: number): string {
  return limit === 0 ? '100 %' : `${Math.floor((used / limit) * 100)} %`;
}

/** Returns the requests of each code class as text: `1,234 2xx, 5 none`. Leaves out classes without requests. */
export function codeClassesText(requests: RequestsByCodeClass): string {
  return CODE_CLASSES.filter((codeClass) => requests[codeClass] > 0)
    .map((codeClass) => `${countText(requests[codeClass])} ${codeClass}`)
    .join(', ');
}

/** Returns refusals as text, the most frequent reason first: `1,234 rate-limit, 0.3 no-endpoints`. Returns `none` if there are none. */
export function refusalsText(refused: RefusalCounts): string {
  const byCount = Object.entries(refused).sort(([a, x], [b, y]) => y - x || compareText(a, b));
  return joinList(byCount.map(([reason, count]) => `${countText(count)} ${reason}`)) || 'none';
}

/** Returns a share as text, such as `0.4 %` or `37 %`. Returns `-` if the whole is 0. */
export function shareText(part: number, whole: number): string {
  if (whole === 0) return '-';
  const percent = (part / whole) * 100;
  return percent > 0 && percent < 9.95 ? `${percent.toFixed(1)} %` : `${Math.round(percent)} %`;
}

/** Returns up to three digits, a space and the prefix of the unit: `12.4 M`. */
function scaled(amount: number): string {
  let value = amount;
  let step = 0;
  while (value >= 999.5 && step < PREFIXES.length - 1) {
    value /= 1_000;
    step += 1;
  }
  const figures = step === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1);
  return `${figures} ${PREFIXES[step] ?? ''}`;
}
