const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Milliseconds of a duration such as `500ms`, `5s`, `10m`, `2h`; undefined when the text is not one. */
export function parseDuration(text: string): number | undefined {
  const parts = /^([0-9]{1,9})(ms|s|m|h)$/.exec(text);
  if (parts === null) return undefined;
  const [, count = '', unit = ''] = parts;
  return Number(count) * (UNITS_MS[unit] ?? 0);
}
