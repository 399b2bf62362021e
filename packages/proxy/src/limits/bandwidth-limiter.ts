import { BYTES_BURST_NS, type Limiter } from './limiter.ts';
import { type Direction, type LimiterState, NO_VERSION } from './limiter-state.ts';

/**
 * One read of a throttled stream takes at most the bytes that the rate allows in this time, but `MIN_QUANTUM_BYTES` if
 * the rate allows less.
 */
const QUANTUM_SECONDS = 0.05;
const MIN_QUANTUM_BYTES = 2_048;
/**
 * Bytes are charged when as many have passed as the rate allows in this time, or when `MAX_UNCHARGED_BYTES` have
 * passed.
 */
const MAX_UNCHARGED_SECONDS = 0.000_5;
const MAX_UNCHARGED_BYTES = 65_536;
/**
 * While readers of this worker wait, datagrams pass only in every other period of this length (see `tryTake`). The period
 * is longer than the shaper's tick (`TICK_MS`) and shorter than `BYTES_BURST_NS`.
 */
const DATAGRAM_SHARE_PERIOD_NS = 20_000_000n;

/**
 * Limits the bytes of one Service in one direction with two token buckets: the bucket of the Service and the bucket of
 * its tenant. Without a bucket of a Service, limits the bytes of all Services of the tenant.
 */
export class BandwidthLimiter {
  readonly now: () => bigint;
  readonly #service: BandwidthBucket | undefined;
  readonly #tenant: BandwidthBucket;
  #unchargedBytes = 0;
  /** The number of bytes that may stay uncharged, set by `readLimits`. Infinity if there is no limit. */
  #maxUnchargedBytes = Infinity;
  #quantumBytes = Infinity;
  #bandwidthVersion: number = NO_VERSION;
  /** Whether a reader of any worker waits for one of the buckets. Valid for `#waitingVersion`. */
  #anyReaderWaits = false;
  #waitingVersion: number = NO_VERSION;

  constructor({
    service,
    tenant,
    now,
  }: {
    readonly service: BandwidthBucket | undefined;
    readonly tenant: BandwidthBucket;
    readonly now: () => bigint;
  }) {
    this.#service = service;
    this.#tenant = tenant;
    this.now = now;
  }

  /**
   * Reads the limits again if a bandwidth limit has changed. The other members use the limits of the last call. `tryTake` calls
   * this method for each datagram, and `SessionThrottle` calls it when the bandwidth version changes.
   */
  readLimits(): void {
    const { state } = this.#tenant;
    if (state.isBandwidthVersion(this.#bandwidthVersion)) return;
    this.#bandwidthVersion = state.readBandwidthVersion();
    const bytesPerSecond = this.#bytesPerSecond();
    this.#maxUnchargedBytes = maxUnchargedBytesFor(bytesPerSecond);
    this.#quantumBytes = Math.max(MIN_QUANTUM_BYTES, Math.floor(bytesPerSecond * QUANTUM_SECONDS));
    this.#tenant.onLimitChanged();
    this.#service?.onLimitChanged();
  }

  /** Whether the Service or its tenant has a bandwidth limit. */
  get isLimited(): boolean {
    return this.#maxUnchargedBytes !== Infinity;
  }

  /** Whether the limit of the Service or of its tenant is 0. If so, no byte may pass until the limit is raised. */
  get isBlocked(): boolean {
    return this.#service?.bitsPerSecond === 0 || this.#tenant.bitsPerSecond === 0;
  }

  /** The maximum size of one read of a stream. Infinity if there is no limit. */
  get quantumBytes(): number {
    return this.#quantumBytes;
  }

  /**
   * Adds bytes that have passed to the uncharged bytes. Returns true if `chargeAll` must be called now, because the uncharged
   * bytes have reached the maximum or a reader of this worker waits. Bytes are not charged one read at a time, because a
   * charge takes atomic operations on memory that all workers share.
   */
  addUncharged(bytes: number): boolean {
    this.#unchargedBytes += bytes;
    return this.#unchargedBytes >= this.#maxUnchargedBytes || this.#hasOwnReaders();
  }

  /**
   * Adds the bytes of the last read of a stream, and returns true if the buckets must be checked before the next read. Without
   * a last read (`bytes` is 0), also returns true if a bucket may be overdrawn, so that short connections do not exceed the
   * rate.
   */
  addRead(bytes: number): boolean {
    if (this.addUncharged(bytes)) return true;
    return bytes === 0 && this.#mayHaveToWait();
  }

  /** Charges the uncharged bytes to both buckets. */
  chargeAll(now: bigint): void {
    const bytes = this.#unchargedBytes;
    if (bytes === 0) return;
    this.#unchargedBytes = 0;
    this.#service?.charge(bytes, now);
    this.#tenant.charge(bytes, now);
  }

  /** Returns the first bucket for which a stream must wait, or undefined if the stream need not wait. */
  blockingBucket(now: bigint): BandwidthBucket | undefined {
    if (this.#service?.mustWait(now) === true) return this.#service;
    return this.#tenant.mustWait(now) ? this.#tenant : undefined;
  }

  /**
   * Returns the bucket for which a stream must wait after `bucket` has served it, or undefined if the stream need not
   * wait any more. A stream waits first for the Service's bucket and then for the tenant's bucket.
   */
  blockingBucketAfter(bucket: BandwidthBucket, now: bigint): BandwidthBucket | undefined {
    return bucket !== this.#tenant && this.#tenant.mustWait(now) ? this.#tenant : undefined;
  }

  /**
   * Counts the bytes of a datagram, to be charged as `addUncharged` says, and returns true, or returns false if the datagram must
   * be dropped. A datagram above the rate is dropped because its sender cannot be paused. The rate is checked only when a
   * charge is due. While readers of this worker wait, datagrams pass only in every other period, so that streams and
   * datagrams do not starve each other.
   */
  tryTake(bytes: number): boolean {
    this.readLimits();
    if (!this.isLimited || !this.addUncharged(bytes)) return true;
    const now = this.now();
    if (this.#mustDrop(now)) {
      this.#unchargedBytes -= bytes;
      return false;
    }
    this.chargeAll(now);
    return true;
  }

  // Methods, because V8 looks up a private getter at each use.

  #bytesPerSecond(): number {
    return Math.min(this.#service?.bitsPerSecond ?? Infinity, this.#tenant.bitsPerSecond) / 8;
  }

  #mustDrop(now: bigint): boolean {
    if (this.#service?.isOverdrawn(now) === true || this.#tenant.isOverdrawn(now)) return true;
    return this.#hasOwnReaders() && (now / DATAGRAM_SHARE_PERIOD_NS) % 2n === 0n;
  }

  #hasOwnReaders(): boolean {
    return this.#tenant.hasOwnReaders || this.#service?.hasOwnReaders === true;
  }

  /**
   * Whether a stream must check the buckets before a read. True also while readers of other workers wait, because these
   * workers have overdrawn a bucket.
   */
  #mayHaveToWait(): boolean {
    if (this.#tenant.mayBeOverdrawn || this.#service?.mayBeOverdrawn === true) return true;
    const { state } = this.#tenant;
    if (!state.isWaitingVersion(this.#waitingVersion)) {
      this.#waitingVersion = state.readWaitingVersion();
      this.#anyReaderWaits = this.#tenant.anyReaderWaits() || this.#service?.anyReaderWaits() === true;
    }
    return this.#anyReaderWaits;
  }
}

function maxUnchargedBytesFor(bytesPerSecond: number): number {
  if (bytesPerSecond === Infinity) return bytesPerSecond;
  return Math.min(MAX_UNCHARGED_BYTES, bytesPerSecond * MAX_UNCHARGED_SECONDS);
}

/**
 * How long credit is reserved for the reader that has waited longest among the readers of all workers. If the reader's
 * worker has not used the credit within this time, other workers may use the credit.
 */
const MAX_PRIORITY_NS = 30_000_000n;
const NS_PER_BYTE_AT_ONE_BIT_PER_SECOND = 8e9;

/** A stream that is not read until a bandwidth bucket serves it. */
export interface WaitingReader {
  /** When the stream began to wait for its current bucket, in nanoseconds. The bucket sets this time. */
  waitingSinceNs: bigint;
  /** The size of the last read, which predicts the size of the next read. */
  readonly lastReadBytes: number;
  onServed(bucket: BandwidthBucket, now: bigint): void;
}

/**
 * The token bucket of one tenant or Service in one direction, and the readers of this worker that wait for the bucket.
 */
export class BandwidthBucket {
  /**
   * False if this worker has found the bucket not overdrawn, and since then has charged nothing and no limit has changed. Only
   * the bucket writes this field.
   */
  mayBeOverdrawn = true;
  /** Whether readers of this worker wait. A field, and not a getter of `#waiting`, because each chunk needs the answer. */
  hasOwnReaders = false;
  readonly #limiter: Limiter;
  readonly #direction: Direction;
  readonly #onWaiting: (bucket: BandwidthBucket) => void;
  /** The waiting readers, in the order in which they began to wait. */
  readonly #waiting = new Set<WaitingReader>();

  constructor(limiter: Limiter, { direction, onWaiting }: BandwidthBucketOptions) {
    this.#limiter = limiter;
    this.#direction = direction;
    this.#onWaiting = onWaiting;
  }

  get bitsPerSecond(): number {
    return this.#limiter.bitsPerSecond(this.#direction);
  }

  get state(): LimiterState {
    return this.#limiter.state;
  }

  /** Reports whether a reader of any worker waits. */
  anyReaderWaits(): boolean {
    const { state, row } = this.#limiter;
    return state.waitingReaders(row, this.#direction) > 0;
  }

  onLimitChanged(): void {
    this.mayBeOverdrawn = true;
  }

  charge(bytes: number, now: bigint): void {
    if (this.bitsPerSecond === Infinity) return;
    this.#limiter.charge(this.#direction, bytes, now);
    this.mayBeOverdrawn = true;
  }

  /**
   * Reports whether a stream must wait before its next read, because the bucket is overdrawn or other readers already
   * wait.
   */
  mustWait(now: bigint): boolean {
    return this.isOverdrawn(now) || (this.hasOwnReaders && this.bitsPerSecond !== Infinity);
  }

  /** Reports whether the bucket is in debt or its rate is 0. In both cases no byte may pass now. */
  isOverdrawn(now: bigint): boolean {
    const { bitsPerSecond } = this;
    this.mayBeOverdrawn =
      bitsPerSecond !== Infinity && (bitsPerSecond === 0 || this.#limiter.paidUntil(this.#direction) > now);
    return this.mayBeOverdrawn;
  }

  enqueue(reader: WaitingReader, now: bigint): void {
    reader.waitingSinceNs = now;
    this.#waiting.add(reader);
    this.#publishReaders();
    if (this.#waiting.size === 1) this.#onWaiting(this);
  }

  dequeue(reader: WaitingReader): void {
    if (this.#waiting.delete(reader)) this.#publishReaders();
  }

  /**
   * Serves waiting readers until the credit is used up, and assumes that each reader reads as much as the last time.
   * Serves at least one reader if the bucket is not in debt, unless a reader of another worker has priority. Bytes that
   * are read beyond the credit become debt.
   */
  serve(now: bigint): void {
    const sincePaid = now - this.#limiter.paidUntil(this.#direction);
    let credit = creditBytesFor(this.bitsPerSecond, sincePaid);
    const served: WaitingReader[] = [];
    for (const reader of this.#waiting) {
      if (credit < 0 || (sincePaid < MAX_PRIORITY_NS && this.#isBehindPeerWorker(reader))) break;
      credit -= reader.lastReadBytes;
      served.push(reader);
    }
    for (const reader of served) this.#waiting.delete(reader);
    if (served.length > 0) this.#publishReaders();
    for (const reader of served) reader.onServed(this, now);
  }

  #isBehindPeerWorker(reader: WaitingReader): boolean {
    const { state, row, workerSlot } = this.#limiter;
    return state.hasEarlierReader(row, { direction: this.#direction, workerSlot }, reader.waitingSinceNs);
  }

  #publishReaders(): void {
    const { state, row, workerSlot } = this.#limiter;
    this.hasOwnReaders = this.#waiting.size > 0;
    const [first] = this.#waiting;
    const key = { direction: this.#direction, workerSlot };
    state.setFirstWaiting(row, key, first?.waitingSinceNs ?? 0n);
    state.setWaitingReaders(row, key, this.#waiting.size);
  }
}

/** Returns the number of bytes that may pass now. Negative if the bucket is in debt or the rate is 0. */
function creditBytesFor(bitsPerSecond: number, sincePaid: bigint): number {
  if (bitsPerSecond === Infinity) return bitsPerSecond;
  if (bitsPerSecond === 0) return -1;
  return (
    (Number(sincePaid < BYTES_BURST_NS ? sincePaid : BYTES_BURST_NS) * bitsPerSecond) /
    NS_PER_BYTE_AT_ONE_BIT_PER_SECOND
  );
}

export interface BandwidthBucketOptions {
  readonly direction: Direction;
  /** Called when a reader begins to wait and no other reader waits. */
  onWaiting(bucket: BandwidthBucket): void;
}
