import type { Limiters } from './admission.ts';
import { BandwidthBucket, BandwidthLimiter, type WaitingReader } from './bandwidth-limiter.ts';
import type { Limiter } from './limiter.ts';
import type { Direction } from './limiter-state.ts';

// Bandwidth of one worker: the lanes of its Services, and one timer for all that waits. It runs only while something does.
const TICK_MS = 10;
export type BandwidthLimiters = { readonly [D in Direction]: BandwidthLimiter };
type BandwidthBuckets = { readonly [D in Direction]: BandwidthBucket };

export class Shaper {
  readonly #now: () => bigint;
  readonly #limiters = new WeakMap<Limiters, BandwidthLimiters>();
  readonly #buckets = new WeakMap<Limiter, BandwidthBuckets>();
  readonly #bucketsWithWaiters = new Set<BandwidthBucket>();
  #timer: NodeJS.Timeout | undefined;

  /** Nanoseconds, the same in all threads. */
  constructor(now: () => bigint = process.hrtime.bigint) {
    this.#now = now;
  }

  limitersFor(budgets: Limiters): BandwidthLimiters {
    const known = this.#limiters.get(budgets);
    if (known !== undefined) return known;
    const service = this.#bucketsOf(budgets.service);
    const tenant = this.#bucketsOf(budgets.tenant);
    const now = this.#now;
    const lanes = {
      in: new BandwidthLimiter({ service: service.in, tenant: tenant.in, now }),
      out: new BandwidthLimiter({ service: service.out, tenant: tenant.out, now }),
    };
    this.#limiters.set(budgets, lanes);
    return lanes;
  }

  /** Gives turns to those that wait. */
  serve(): void {
    const now = this.#now();
    for (const meter of this.#bucketsWithWaiters) {
      meter.serve(now);
      if (!meter.hasWaiters) this.#bucketsWithWaiters.delete(meter);
    }
    if (this.#bucketsWithWaiters.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #bucketsOf(budget: Limiter): BandwidthBuckets {
    const known = this.#buckets.get(budget);
    if (known !== undefined) return known;
    const onWaiting = (meter: BandwidthBucket): void => {
      this.#bucketsWithWaiters.add(meter);
      this.#timer ??= setInterval(() => this.serve(), TICK_MS).unref();
    };
    const meters = {
      in: new BandwidthBucket(budget, { direction: 'in', onWaiting }),
      out: new BandwidthBucket(budget, { direction: 'out', onWaiting }),
    };
    this.#buckets.set(budget, meters);
    return meters;
  }
}

export interface ThrottledReader {
  /** A side that had to wait may be read. Must not throw. */
  onReadAllowed(direction: Direction): void;
}

/** Whether the two sides of a connection may be read, as far as bytes per second go. Costs two comparisons where no limit is. */
export class SessionThrottle {
  readonly #limiters: BandwidthLimiters;
  readonly #reader: ThrottledReader;
  #in: ReadThrottle | undefined;
  #out: ReadThrottle | undefined;

  constructor(lanes: BandwidthLimiters, reader: ThrottledReader) {
    this.#limiters = lanes;
    this.#reader = reader;
  }

  /** `bytes` were read of the client, or, on their way out, of the endpoint; 0: none. False: it must wait for `onTurn`. */
  mayRead(direction: Direction, bytes: number): boolean {
    const throttle = direction === 'out' ? this.#out : this.#in;
    const lane = this.#limiterOf(direction);
    if (lane.isLimited) return (throttle ?? this.#createThrottle(direction)).mayReadAfter(bytes);
    return throttle === undefined || !throttle.isWaiting;
  }

  /** How much may be read at a time; Infinity: as much as there is. */
  quantumBytes(direction: Direction): number {
    return this.#limiterOf(direction).quantumBytes;
  }

  /** It does nothing because it may not yet. */
  get isThrottled(): boolean {
    return isWaiting(this.#in, this.#limiters.in) || isWaiting(this.#out, this.#limiters.out);
  }

  end(): void {
    this.#in?.end();
    this.#out?.end();
  }

  /** By two names and not by one that varies, for which V8 looks into a hash table for every chunk. */
  #limiterOf(direction: Direction): BandwidthLimiter {
    return direction === 'out' ? this.#limiters.out : this.#limiters.in;
  }

  #createThrottle(direction: Direction): ReadThrottle {
    const throttle = new ReadThrottle(this.#limiterOf(direction), () => this.#reader.onReadAllowed(direction));
    if (direction === 'out') this.#out = throttle;
    else this.#in = throttle;
    return throttle;
  }
}

/** For a turn that will come. Where none will, it is idle: its client may be gone, which only reading would show. */
function isWaiting(throttle: ReadThrottle | undefined, lane: BandwidthLimiter): boolean {
  return throttle?.isWaiting === true && !lane.isBlocked;
}

/** Of a stream that has read nothing yet. */
const INITIAL_READ_BYTES = 16_384;

/** The reading of one stream whose bytes per second are limited. Nothing is dropped: whoever is too fast is not read. */
export class ReadThrottle implements WaitingReader {
  lastReadBytes: number = INITIAL_READ_BYTES;
  waitingSinceNs = 0n;
  readonly #limiter: BandwidthLimiter;
  readonly #resume: () => void;
  #waitingAt: BandwidthBucket | undefined;
  #isEnded = false;

  /** `goOn` is called when its turn has come. It must not throw. */
  constructor(lane: BandwidthLimiter, goOn: () => void) {
    this.#limiter = lane;
    this.#resume = goOn;
  }

  /** It must not read now; `goOn` follows. */
  get isWaiting(): boolean {
    return this.#waitingAt !== undefined;
  }

  /** So many bytes were read, or none yet. False: it is held from now on. */
  mayReadAfter(bytes: number): boolean {
    const lane = this.#limiter;
    if (bytes > 0) {
      this.lastReadBytes = bytes;
      if (!lane.defer(bytes) && !this.isWaiting) return true;
    }
    const now = lane.now();
    lane.chargeDeferred(now);
    // Already held: a read that was under way when it was stopped.
    if (this.isWaiting) return false;
    this.#waitAt(lane.blockingBucket(now), now);
    return !this.isWaiting;
  }

  /** Its turn at one meter has come. */
  onServed(meter: BandwidthBucket, now: bigint): void {
    this.#waitingAt = undefined;
    if (this.#isEnded) return;
    this.#waitAt(this.#limiter.blockingBucketAfter(meter, now), now);
    if (!this.isWaiting) this.#resume();
  }

  /** The stream is over. */
  end(): void {
    this.#isEnded = true;
    this.#waitingAt?.dequeue(this);
    this.#waitingAt = undefined;
  }

  #waitAt(meter: BandwidthBucket | undefined, now: bigint): void {
    this.#waitingAt = meter;
    meter?.enqueue(this, now);
  }
}
