/** If a count differs from its mean by more standard deviations than this, the demand has changed. Random arrivals exceed this in 3 of 10,000 measurements. */
const MAX_DEVIATIONS = 3.6;
/** The spans whose rates are compared with the mean. A large change shows in the shortest span, a small change only in the longest. */
const CHANGE_SPANS_MS = [50, 100, 200, 400] as const;

/** What was read at `atMs` of a clock that only increases. */
export interface TimedSample {
  readonly atMs: number;
}

/**
 * Returns the demand per second from samples of a counter, oldest first: the mean over all samples, or the rate of the last 50, 100, 200 or
 * 400 ms if this rate clearly differs from the mean. The mean of a second is steady enough for a demand of 20 per second; the shorter times
 * show at once that a demand has moved. `counterOf` returns the counter of a sample, which only increases.
 */
export function demandPerSecond<Sample extends TimedSample>(
  samples: readonly Sample[],
  counterOf: (sample: Sample) => number,
): number {
  const [oldest, newest] = [samples[0], samples.at(-1)];
  if (oldest === undefined || newest === undefined || newest.atMs === oldest.atMs) return 0;
  const newestCount = counterOf(newest);
  const mean = (newestCount - counterOf(oldest)) / (newest.atMs - oldest.atMs);
  if (mean === 0) return 0;
  for (const spanMs of CHANGE_SPANS_MS) {
    const previous = samples.findLast(({ atMs }) => newest.atMs - atMs >= spanMs);
    if (previous === undefined) break;
    const elapsedMs = newest.atMs - previous.atMs;
    const count = newestCount - counterOf(previous);
    if (deviationsOf(count, mean * elapsedMs) > MAX_DEVIATIONS) return (1_000 * count) / elapsedMs;
  }
  return 1_000 * mean;
}

/**
 * Returns by how many standard deviations a count of a Poisson process differs from its mean: the square root of its deviance
 * (P. McCullagh and J. Nelder, "Generalized Linear Models", §2.3), which has nearly a normal distribution for small means as well.
 */
function deviationsOf(count: number, expected: number): number {
  const mean = Math.max(1, expected);
  const logarithm = count === 0 ? 0 : count * Math.log(count / mean);
  return Math.sqrt(2 * Math.max(0, logarithm - (count - mean)));
}
