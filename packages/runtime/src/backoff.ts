export interface BackoffOptions {
  readonly minMs: number;
  readonly maxMs: number;
  /** Returns a number from 0 up to but not including 1, as `Math.random` does. */
  readonly random: () => number;
}

/**
 * Returns the wait in milliseconds after the `failures`-th consecutive failure (counted from 1). The wait is a random value between `minMs`
 * and a ceiling. The ceiling doubles with each failure, up to `maxMs`. Full jitter spreads the retries of clients that failed at the same
 * moment. The floor `minMs` prevents an immediate retry.
 */
export function backoffMs(failures: number, { minMs, maxMs, random }: BackoffOptions): number {
  const ceiling = Math.min(maxMs, minMs * 2 ** Math.min(Math.max(0, failures), 30));
  return Math.round(minMs + random() * Math.max(0, ceiling - minMs));
}
