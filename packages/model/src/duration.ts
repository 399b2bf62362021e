// Durations as users write them in annotations and settings: `500ms`, `5s`, `10m`, `1h30m`, `7d`.

const UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
];

/** Matches one to five numbers with units, from the largest unit to the smallest. Also matches the empty text, which is not a duration. */
export const DURATION_PATTERN: string = `^${UNITS.map(([unit]) => `([0-9]{1,10}${unit})?`).join('')}$`;
const DURATION = new RegExp(DURATION_PATTERN);

/** Returns a duration in milliseconds; undefined if the text is not a duration, for example a number without a unit. */
export function parseDuration(text: string): number | undefined {
  const match = text === '' ? null : DURATION.exec(text);
  if (match === null) return undefined;
  const total = UNITS.reduce((sum, [, ms], index) => sum + Number.parseInt(match[index + 1] ?? '0', 10) * ms, 0);
  return Number.isSafeInteger(total) ? total : undefined;
}

/** Returns the shortest exact text of a duration in milliseconds, such as `1m30s` for 90,000. */
export function formatDuration(ms: number): string {
  let rest = Math.max(0, Math.round(ms));
  let text = '';
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) text += `${count}${unit}`;
  }
  return text || '0s';
}
