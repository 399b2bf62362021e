const UNITS: readonly (readonly [unit: string, ms: number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
];

const DURATION = /^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$/;

/** Parses `500ms`, `5s`, `10m`, `1h30m` or `7d` to milliseconds. Undefined for any other text, including a number without a unit. */
export function parseDuration(text: string): number | undefined {
  const match = text === '' ? null : DURATION.exec(text);
  if (match === null) return undefined;
  const total = UNITS.reduce((sum, [, ms], index) => sum + Number(match[index + 1] ?? 0) * ms, 0);
  return Number.isSafeInteger(total) ? total : undefined;
}

/** Formats milliseconds in the largest units that are exact: 90,000 becomes `1m30s`. */
export function formatDuration(ms: number): string {
  let left = Math.max(0, Math.round(ms));
  let text = '';
  for (const [unit, size] of UNITS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) text += `${count}${unit}`;
  }
  return text || '0s';
}
