// A token bucket in one number, `paidUntil`, so that threads share the bucket with one compare-and-swap: the generic cell rate
// algorithm (ITU-T I.371, virtual scheduling). `paidUntil` is the time until which the rate has paid for the units taken: a time
// in the past is credit (at most the burst), a time in the future is debt. Times are nanoseconds of a monotonic clock.
export interface RateLimit {
  /** Units per second; 0 admits nothing. */
  readonly ratePerSecond: number;
  /** The burst, as the time that the rate takes to provide it. */
  readonly burstNs: bigint;
}

const SECOND_NS = 1_000_000_000;

/**
 * Takes all of `count` units and returns the new `paidUntil`, or returns undefined if the bucket holds fewer. Invariant: in any
 * interval of t seconds, at most burst + rate·t units are taken.
 */
export function takeWithinRate(paidUntil: bigint, count: number, { limit, now }: RateLimitAt): bigint | undefined {
  if (limit.ratePerSecond <= 0) return undefined;
  const next = chargeToRate(paidUntil, count, { limit, now });
  return next > now ? undefined : next;
}

/**
 * Takes `count` units that were already used, going into debt if necessary, and returns the new `paidUntil`. At a rate of 0
 * `paidUntil` stays, since nothing would ever repay the debt.
 */
export function chargeToRate(paidUntil: bigint, count: number, { limit, now }: RateLimitAt): bigint {
  if (limit.ratePerSecond <= 0) return paidUntil;
  const oldest = now - limit.burstNs;
  return (paidUntil < oldest ? oldest : paidUntil) + costNs(count, limit.ratePerSecond);
}

/** Returns the `paidUntil` with the same debt in units after a change from rate `from` to rate `to` (units per second). */
export function rescaleDebt(paidUntil: bigint, { from, to, now }: RateChange): bigint {
  const owedNs = paidUntil - now;
  if (owedNs <= 0n) return paidUntil;
  if (!(from > 0 && to > 0) || from === Number.POSITIVE_INFINITY || to === Number.POSITIVE_INFINITY) return now;
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
}

/** Rounds up, so that the rate is never exceeded. */
function costNs(count: number, ratePerSecond: number): bigint {
  return BigInt(Math.ceil((count * SECOND_NS) / ratePerSecond));
}
