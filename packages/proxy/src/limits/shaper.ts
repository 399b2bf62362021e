import type { Limiters } from './admission.ts';
import { BandwidthBucket, BandwidthLimiter, type WaitingReader } from './bandwidth-limiter.ts';
import type { Limiter } from './limiter.ts';
import { type Direction, type LimiterState, NO_VERSION } from './limiter-state.ts';

const TICK_MS = 10;
export type BandwidthLimiters = { readonly [D in Direction]: BandwidthLimiter };
type BandwidthBuckets = { readonly [D in Direction]: BandwidthBucket };

/**
 * Manages the bandwidth limiters of one worker. A single timer serves all waiting readers. The timer runs only while a
 * reader waits.
 */
export class Shaper {
  readonly #now: () => bigint;
  readonly #limiters = new WeakMap<Limiters, BandwidthLimiters>();
  readonly #limitersOfTenants = new WeakMap<Limiter, BandwidthLimiters>();
  readonly #buckets = new WeakMap<Limiter, BandwidthBuckets>();
  readonly #bucketsWithReaders = new Set<BandwidthBucket>();
  #timer: NodeJS.Timeout | undefined;

  /** `now` returns nanoseconds of a clock that all threads share. */
  constructor(now: () => bigint = process.hrtime.bigint) {
    this.#now = now;
  }

  /** Returns the limiters that apply to the bytes of a Service, whether the Service has a limit or not. */
  limitersFor(limiters: Limiters): BandwidthLimiters {
    let known = this.#limiters.get(limiters);
    if (known === undefined) {
      known = this.#createLimiters(this.#bucketsOf(limiters.service), this.#bucketsOf(limiters.tenant));
      this.#limiters.set(limiters, known);
    }
    return known;
  }

  /**
   * Returns the limiters that apply to the bytes of a Service that has no limit of its own. The Services of a tenant share
   * these limiters, so that the limiters stay in the processor's cache if thousands of Services take turns.
   */
  limitersForTenant({ tenant }: Limiters): BandwidthLimiters {
    let known = this.#limitersOfTenants.get(tenant);
    if (known === undefined) {
      known = this.#createLimiters(undefined, this.#bucketsOf(tenant));
      this.#limitersOfTenants.set(tenant, known);
    }
    return known;
  }

  #createLimiters(service: BandwidthBuckets | undefined, tenant: BandwidthBuckets): BandwidthLimiters {
    const now = this.#now;
    return {
      in: new BandwidthLimiter({ service: service?.in, tenant: tenant.in, now }),
      out: new BandwidthLimiter({ service: service?.out, tenant: tenant.out, now }),
    };
  }

  serve(): void {
    const now = this.#now();
    for (const bucket of this.#bucketsWithReaders) {
      bucket.serve(now);
      if (!bucket.hasOwnReaders) this.#bucketsWithReaders.delete(bucket);
    }
    if (this.#bucketsWithReaders.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #bucketsOf(limiter: Limiter): BandwidthBuckets {
    const known = this.#buckets.get(limiter);
    if (known !== undefined) return known;
    const onWaiting = (bucket: BandwidthBucket): void => {
      this.#bucketsWithReaders.add(bucket);
      this.#timer ??= setInterval(() => this.serve(), TICK_MS).unref();
    };
    const buckets = {
      in: new BandwidthBucket(limiter, { direction: 'in', onWaiting }),
      out: new BandwidthBucket(limiter, { direction: 'out', onWaiting }),
    };
    this.#buckets.set(limiter, buckets);
    return buckets;
  }
}

export interface ThrottledReader {
  /** Called when the throttled side of a session may be read again. Must not throw. */
  onReadAllowed(direction: Direction): void;
}

/**
 * Decides when the two sides of a session may be read under the bandwidth limits. If there is no limit, each read costs a
 * few comparisons.
 */
export class SessionThrottle {
  readonly #shaper: Shaper;
  readonly #reader: ThrottledReader;
  readonly #state: LimiterState;
  #limiters: Limiters;
  /** The limiters of the Service if the Service has a limit of its own, otherwise the limiters of its tenant. */
  #current: BandwidthLimiters;
  /** The version for which `#current` is valid. `NO_VERSION` if the limiters must be chosen again. */
  #bandwidthVersion: number;
  #in: ReadThrottle | undefined;
  #out: ReadThrottle | undefined;

  constructor(shaper: Shaper, limiters: Limiters, reader: ThrottledReader) {
    this.#shaper = shaper;
    this.#state = limiters.tenant.state;
    this.#limiters = limiters;
    this.#reader = reader;
    this.#bandwidthVersion = this.#state.readBandwidthVersion();
    this.#current = this.#chooseLimiters();
  }

  /** Applies the limits of another Service from now on. */
  moveTo(limiters: Limiters): void {
    this.#in?.stopWaiting();
    this.#out?.stopWaiting();
    this.#limiters = limiters;
    this.#bandwidthVersion = NO_VERSION;
  }

  /**
   * Reports whether a side (`in`: the client, `out`: the endpoint) may be read again. `bytes` is the size of the last
   * read, or 0 if nothing was read since. If the result is false, the side must not be read until `onReadAllowed` is
   * called. Must not be called after `end`.
   */
  mayRead(direction: Direction, bytes: number): boolean {
    const limiter = this.#limiterOf(direction);
    if (limiter.isLimited && limiter.addRead(bytes)) return this.#checkRate(direction, bytes, limiter);
    const throttle = direction === 'out' ? this.#out : this.#in;
    return throttle === undefined || !throttle.isWaiting;
  }

  /** Returns the maximum size of one read. Infinity if there is no limit. */
  quantumBytes(direction: Direction): number {
    return this.#limiterOf(direction).quantumBytes;
  }

  /** Whether a bandwidth limit pauses the reads of a side. A side whose limit is 0 does not count: see `isWaiting`. */
  get isThrottled(): boolean {
    return isWaiting(this.#in, this.#limiterOf('in')) || isWaiting(this.#out, this.#limiterOf('out'));
  }

  end(): void {
    this.#in?.end();
    this.#out?.end();
  }

  /**
   * Returns the limiter of a direction. Uses constant property names, because with a computed name V8 would do a hash
   * look-up for every chunk.
   */
  #limiterOf(direction: Direction): BandwidthLimiter {
    if (!this.#state.isBandwidthVersion(this.#bandwidthVersion)) {
      this.#bandwidthVersion = this.#state.readBandwidthVersion();
      this.#current = this.#chooseLimiters();
    }
    return direction === 'out' ? this.#current.out : this.#current.in;
  }

  #chooseLimiters(): BandwidthLimiters {
    const limiters = this.#limiters.service.limitsBandwidth
      ? this.#shaper.limitersFor(this.#limiters)
      : this.#shaper.limitersForTenant(this.#limiters);
    limiters.in.readLimits();
    limiters.out.readLimits();
    return limiters;
  }

  /** Charges the uncharged bytes. If the stream must wait, queues the stream and returns false. */
  #checkRate(direction: Direction, bytes: number, limiter: BandwidthLimiter): boolean {
    const throttle = direction === 'out' ? this.#out : this.#in;
    if (bytes === 0 && throttle?.isServed === true) return true;
    if (bytes > 0) throttle?.onRead(bytes);
    const now = limiter.now();
    limiter.chargeAll(now);
    // The stream already waits if this read began before the stream was paused.
    if (throttle?.isWaiting === true) return false;
    const bucket = limiter.blockingBucket(now);
    if (bucket === undefined) return true;
    (throttle ?? this.#createThrottle(direction, bytes)).waitAt(bucket, limiter, now);
    return false;
  }

  /** Most streams never wait, so a throttle is created only when its stream waits for the first time. */
  #createThrottle(direction: Direction, bytes: number): ReadThrottle {
    const throttle = new ReadThrottle(this.#reader, direction);
    if (bytes > 0) throttle.onRead(bytes);
    if (direction === 'out') this.#out = throttle;
    else this.#in = throttle;
    return throttle;
  }
}

/**
 * Reports whether the side waits and will be read later. A side with a limit of 0 does not count as waiting but as
 * idle, because its client may be gone, and only a read would show that.
 */
function isWaiting(throttle: ReadThrottle | undefined, limiter: BandwidthLimiter): boolean {
  return throttle?.isWaiting === true && !limiter.isBlocked;
}

/** The assumed size of the first read of a stream, until the size of a real read is known. */
const INITIAL_READ_BYTES = 16_384;

/** Pauses the reads of one stream while its Service or tenant is above its rate. No byte of a stream is dropped. */
class ReadThrottle implements WaitingReader {
  /** The size of the last read for which the rate was checked. */
  lastReadBytes: number = INITIAL_READ_BYTES;
  waitingSinceNs = 0n;
  /** Whether the stream has waited and may now read once, even if other streams still wait. */
  isServed = false;
  readonly #reader: ThrottledReader;
  readonly #direction: Direction;
  /** The limiter of the last call of `waitAt`. */
  #limiter: BandwidthLimiter | undefined;
  #waitingAt: BandwidthBucket | undefined;
  #isEnded = false;

  constructor(reader: ThrottledReader, direction: Direction) {
    this.#reader = reader;
    this.#direction = direction;
  }

  get isWaiting(): boolean {
    return this.#waitingAt !== undefined;
  }

  /** To be called with the size of each read for which the rate is checked. */
  onRead(bytes: number): void {
    this.lastReadBytes = bytes;
    this.isServed = false;
  }

  /** Waits for `bucket`, and after the Service's bucket also for the tenant's bucket. */
  waitAt(bucket: BandwidthBucket, limiter: BandwidthLimiter, now: bigint): void {
    this.#limiter = limiter;
    this.#waitingAt = bucket;
    bucket.enqueue(this, now);
  }

  onServed(bucket: BandwidthBucket, now: bigint): void {
    // The reader has stopped waiting since the bucket took it out of the queue.
    if (this.#isEnded || this.#waitingAt !== bucket) return;
    this.#waitingAt = this.#limiter?.blockingBucketAfter(bucket, now);
    if (this.#waitingAt !== undefined) {
      this.#waitingAt.enqueue(this, now);
      return;
    }
    this.isServed = true;
    this.#reader.onReadAllowed(this.#direction);
  }

  /** Stops waiting without a read. */
  stopWaiting(): void {
    this.#waitingAt?.dequeue(this);
    this.#waitingAt = undefined;
    this.isServed = false;
  }

  end(): void {
    this.#isEnded = true;
    this.stopWaiting();
  }
}
