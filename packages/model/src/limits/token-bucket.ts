// A token bucket in one number, `paidUntil`, so that threads can share the bucket with one compare-and-swap. The algorithm is the generic
// cell rate algorithm (ITU-T I.371, virtual scheduling). `paidUntil` is the time until which the rate has paid for the units taken: a time
// in the past is credit (at most the burst), a time in the future is debt. Times are nanoseconds of a monotonic clock.
export interface RateLimit {
  /** Units per second; 0 admits nothing. */
  readonly ratePerSecond: number;
  /** The burst, expressed as the time in which the rate provides the units of the burst. */
  readonly burstNs: bigint;
}

const SECOND_NS = 1_000_000_000;

/**
 * Takes `count` units and returns the new `paidUntil`. Takes nothing and returns undefined if the bucket holds fewer than `count` units.
 * Invariant: in any interval of t seconds, at most burst + rate·t units are taken.
 */
export function takeWithinRate(paidUntil: bigint, count: number, { limit, now }: RateLimitAt): bigint | undefined {
  if (limit.ratePerSecond <= 0) return undefined;
  const next = chargeToRate(paidUntil, count, { limit, now });
  return next > now ? undefined : next;
}

/**
 * Charges `count` units that were already used, and returns the new `paidUntil`. The bucket goes into debt if necessary. At a rate of 0
 * `paidUntil` stays, because nothing would ever repay the debt.
 */
export function chargeToRate(paidUntil: bigint, count: number, { limit, now }: RateLimitAt): bigint {
  if (limit.ratePerSecond <= 0) return paidUntil;
  const oldest = now - limit.burstNs;
  return (paidUntil < oldest ? oldest : paidUntil) + costNs(count, limit.ratePerSecond);
}

/**
 * Returns the `paidUntil` that stands for the same debt or credit (in units) after the rate has changed. `from` and `to` are the old and the
 * new rate (units per second). Credit is at most the burst. If one of the rates is infinite, a debt is cancelled and a credit keeps its
 * `paidUntil`. If one of the rates is 0, debt and credit are cancelled.
 */
export function rescalePaidUntil(paidUntil: bigint, { from, to, now, burstNs }: RateChange): bigint {
  if (from === Number.POSITIVE_INFINITY || to === Number.POSITIVE_INFINITY) return paidUntil > now ? now : paidUntil;
  if (!(from > 0 && to > 0)) return now;
  const oldest = now - burstNs;
  const owedNs = (paidUntil < oldest ? oldest : paidUntil) - now;
  return now + BigInt(Math.ceil((Number(owedNs) * from) / to));
}

export interface RateLimitAt {
  readonly limit: RateLimit;
  readonly now: bigint;
}

export interface RateChange {
  readonly from: number;
  readonly to: number;
  readonly now: bigint;
  /** As in `RateLimit`, the same for both rates. */
  readonly burstNs: bigint;
}

/** Returns the time in which the rate provides `count` units. Rounds up, so that the rate is never exceeded. */
function costNs(count: number, ratePerSecond: number): bigint {
  return BigInt(Math.ceil((count * SECOND_NS) / ratePerSecond));
}
