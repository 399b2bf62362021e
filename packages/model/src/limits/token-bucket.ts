/** Tokens that fill at a steady rate up to a burst. A value; time comes from outside. */
export interface TokenBucket {
  readonly ratePerSecond: number;
  readonly burst: number;
  readonly tokens: number;
  /** Milliseconds, of any clock that does not run backwards. */
  readonly updatedAt: number;
}

/** A full bucket. */
export function createTokenBucket(
  limit: { readonly ratePerSecond: number; readonly burst: number },
  now: number,
): TokenBucket {
  return { ...limit, tokens: limit.burst, updatedAt: now };
}

/**
 * Takes `count` tokens whole or not at all. Law: over any t seconds never more than burst + rate·t are taken. A clock
 * that steps back fills nothing.
 */
export function takeTokens(
  bucket: TokenBucket,
  count: number,
  now: number,
): { readonly bucket: TokenBucket; readonly taken: boolean } {
  const updatedAt = Math.max(bucket.updatedAt, now);
  const tokens = Math.min(bucket.burst, bucket.tokens + ((updatedAt - bucket.updatedAt) * bucket.ratePerSecond) / 1000);
  const taken = count <= tokens;
  return { bucket: { ...bucket, tokens: taken ? tokens - count : tokens, updatedAt }, taken };
}

// A token bucket as one number, so that threads can share it with one compare-and-swap: the moment until which all that
// was taken has been paid for by the rate (the generic cell rate algorithm of ITU-T I.371, virtual scheduling). Earlier
// than now: credit, at most the burst; later: debt. Times are nanoseconds of a clock that does not run backwards.
export interface RateLimit {
  /** Units per second; 0: none at all. */
  readonly ratePerSecond: number;
  /** What may be saved up, as the time in which the rate gives it. */
  readonly burstNs: bigint;
}

const SECOND_NS = 1_000_000_000;

/**
 * Takes `count` units whole or not at all: the new `paidUntil`, or undefined when there are not so many. Law: over any t
 * never more than the burst and rate·t are taken.
 */
export function takeWithinRate(paidUntil: bigint, count: number, { limit, now }: RateLimitAt): bigint | undefined {
  if (limit.ratePerSecond <= 0) return undefined;
  const next = chargeToRate(paidUntil, count, { limit, now });
  return next > now ? undefined : next;
}

/** Takes `count` units that are gone already, if need be into debt; at a rate of 0 nothing would ever pay for them. */
export function chargeToRate(paidUntil: bigint, count: number, { limit, now }: RateLimitAt): bigint {
  if (limit.ratePerSecond <= 0) return paidUntil;
  const oldest = now - limit.burstNs;
  return (paidUntil < oldest ? oldest : paidUntil) + costNs(count, limit.ratePerSecond);
}

/** `paidUntil` when the rate changes: what is owed or saved stays so many units. */
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

/** Rounded up: never more than the rate. */
function costNs(count: number, ratePerSecond: number): bigint {
  return BigInt(Math.ceil((count * SECOND_NS) / ratePerSecond));
}
