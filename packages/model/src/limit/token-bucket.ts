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
