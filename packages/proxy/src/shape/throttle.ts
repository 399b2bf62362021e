import type { BandwidthLimiter } from './lane.ts';
import type { BandwidthBucket, WaitingReader } from './meter.ts';

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
