export interface BackoffOptions {
  readonly minMs: number;
  readonly maxMs: number;
  /** From [0, 1). */
  readonly random: () => number;
}

/**
 * How long to wait after the `failures`-th failure in a row (counted from 1): anywhere between `minMs` and a ceiling that doubles
 * with each failure up to `maxMs`. The whole span is drawn from (full jitter: many that failed together do not come back together),
 * but `minMs` is kept as a floor, so that nothing is tried twice at once.
 */
export function backoffMs(failures: number, { minMs, maxMs, random }: BackoffOptions): number {
  const ceiling = Math.min(maxMs, minMs * 2 ** Math.min(Math.max(0, failures), 30));
  return Math.round(minMs + random() * Math.max(0, ceiling - minMs));
}
