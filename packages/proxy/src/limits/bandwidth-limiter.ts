import { BYTES_BURST_NS, type Limiter } from './limiter.ts';
import type { Direction } from './limiter-state.ts';

/** The maximum size of one read of a throttled stream, in seconds of its rate. */
const QUANTUM_SECONDS = 0.05;
const MIN_QUANTUM_BYTES = 2_048;
/**
 * The maximum of bytes that pass before they are charged, in seconds of the rate. `MAX_UNCHARGED_BYTES` limits them
 * too.
 */
const MAX_UNCHARGED_SECONDS = 0.000_5;
const MAX_UNCHARGED_BYTES = 65_536;
/**
 * The length of the periods in which streams and datagrams alternate. It is longer than the shaper's tick and shorter
 * than the burst.
 */
const DATAGRAM_SHARE_PERIOD_NS = 20_000_000n;

/** Limits the bytes of one Service in one direction by two buckets: the Service's and its tenant's. */
export class BandwidthLimiter {
  readonly now: () => bigint;
  readonly #service: BandwidthBucket;
  readonly #tenant: BandwidthBucket;
  #unchargedBytes = 0;

  constructor({
    service,
    tenant,
    now,
  }: { readonly service: BandwidthBucket; readonly tenant: BandwidthBucket; readonly now: () => bigint }) {
    this.#service = service;
    this.#tenant = tenant;
    this.now = now;
  }

  /** Checked for every chunk, because limits are set and removed while connections are open. */
  get isLimited(): boolean {
    return this.#service.bitsPerSecond !== Infinity || this.#tenant.bitsPerSecond !== Infinity;
  }

  /** Whether a limit is 0, so that nothing may pass until the limit is raised. */
  get isBlocked(): boolean {
    return this.#service.bitsPerSecond === 0 || this.#tenant.bitsPerSecond === 0;
  }

  /** How many bytes a stream may read at a time. Infinity if there is no limit. */
  get quantumBytes(): number {
    return Math.max(MIN_QUANTUM_BYTES, Math.floor(this.#bytesPerSecond * QUANTUM_SECONDS));
  }

  /**
   * Adds bytes that have passed, and returns whether they must be charged now. Charging takes atomic operations on
   * memory that all workers share, so it is deferred until many bytes are uncharged or a reader waits. Until then
   * little more than the rate can pass.
   */
  defer(bytes: number): boolean {
    this.#unchargedBytes += bytes;
    return this.#unchargedBytes >= this.#maxUnchargedBytes || this.#service.hasWaiters || this.#tenant.hasWaiters;
  }

  chargeDeferred(now: bigint): void {
    const bytes = this.#unchargedBytes;
    this.#unchargedBytes = 0;
    this.charge(bytes, now);
  }

  charge(bytes: number, now: bigint): void {
    if (bytes === 0) return;
    this.#service.charge(bytes, now);
    this.#tenant.charge(bytes, now);
  }

  /** Returns the first bucket for which a stream must wait, or undefined if it need not wait. */
  blockingBucket(now: bigint): BandwidthBucket | undefined {
    return this.#service.mustWait(now) ? this.#service : this.blockingBucketAfter(this.#service, now);
  }

  /**
   * Returns the next bucket for which a stream must wait after `bucket` has served it. The wait ends with the tenant's
   * bucket.
   */
  blockingBucketAfter(bucket: BandwidthBucket, now: bigint): BandwidthBucket | undefined {
    return bucket === this.#service && this.#tenant.mustWait(now) ? this.#tenant : undefined;
  }

  /**
   * Charges the bytes of a datagram and returns true, or returns false if the datagram must be dropped, because its
   * sender cannot be paused. While streams wait, datagrams are accepted only half of the time, so that neither starves
   * the other.
   */
  tryTake(bytes: number): boolean {
    if (!this.isLimited) return true;
    const now = this.now();
    if (this.#service.isOverdrawn(now) || this.#tenant.isOverdrawn(now)) return false;
    const hasWaiters = this.#service.hasWaiters || this.#tenant.hasWaiters;
    if (hasWaiters && (now / DATAGRAM_SHARE_PERIOD_NS) % 2n === 0n) return false;
    this.charge(bytes, now);
    return true;
  }

  get #maxUnchargedBytes(): number {
    return Math.min(MAX_UNCHARGED_BYTES, this.#bytesPerSecond * MAX_UNCHARGED_SECONDS);
  }

  get #bytesPerSecond(): number {
    return Math.min(this.#service.bitsPerSecond, this.#tenant.bitsPerSecond) / 8;
  }
}

/**
 * How long the reader that has waited longest over all workers has priority. If its worker leaves the credit unused for
 * this long, other workers use the credit.
 */
const MAX_PRIORITY_NS = 30_000_000n;
const NS_PER_BYTE_AT_ONE_BIT_PER_SECOND = 8e9;

/** A stream whose reads wait for a bandwidth bucket. */
export interface WaitingReader {
  /** Nanoseconds. Written by the bucket. */
  waitingSinceNs: bigint;
  /** The size of the last read, which predicts the size of the next read. */
  readonly lastReadBytes: number;
  onServed(bucket: BandwidthBucket, now: bigint): void;
}

/** The token bucket of one tenant or Service in one direction, with the readers of this worker that wait for it. */
export class BandwidthBucket {
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

  get hasWaiters(): boolean {
    return this.#waiting.size > 0;
  }

  charge(bytes: number, now: bigint): void {
    if (this.bitsPerSecond !== Number.POSITIVE_INFINITY) this.#limiter.charge(this.#direction, bytes, now);
  }

  /** Whether a new stream must wait, because of debt or behind the readers that wait already. */
  mustWait(now: bigint): boolean {
    return this.isOverdrawn(now) || (this.hasWaiters && this.bitsPerSecond !== Number.POSITIVE_INFINITY);
  }

  /** Whether no byte may pass now. */
  isOverdrawn(now: bigint): boolean {
    const { bitsPerSecond } = this;
    if (bitsPerSecond === Number.POSITIVE_INFINITY) return false;
    return bitsPerSecond === 0 || this.#limiter.paidUntil(this.#direction) > now;
  }

  enqueue(waiter: WaitingReader, now: bigint): void {
    waiter.waitingSinceNs = now;
    this.#waiting.add(waiter);
    if (this.#waiting.size > 1) return;
    this.#publishFirstWaiter();
    this.#onWaiting(this);
  }

  dequeue(waiter: WaitingReader): void {
    if (this.#waiting.delete(waiter)) this.#publishFirstWaiter();
  }

  /**
   * Serves as many readers as the credit probably suffices for, judged by their last reads. If there is any credit, at least
   * one reader is served. What the readers read beyond the credit becomes debt.
   */
  serve(now: bigint): void {
    const sincePaid = now - this.#limiter.paidUntil(this.#direction);
    let credit = creditBytesFor(this.bitsPerSecond, sincePaid);
    const served: WaitingReader[] = [];
    for (const waiter of this.#waiting) {
      if (credit < 0 || (sincePaid < MAX_PRIORITY_NS && this.#isBehindPeerWorker(waiter))) break;
      credit -= waiter.lastReadBytes;
      served.push(waiter);
    }
    for (const waiter of served) this.#waiting.delete(waiter);
    if (served.length > 0) this.#publishFirstWaiter();
    for (const waiter of served) waiter.onServed(this, now);
  }

  #isBehindPeerWorker(waiter: WaitingReader): boolean {
    const { state, row, workerSlot } = this.#limiter;
    return state.hasEarlierWaiter(row, { direction: this.#direction, workerSlot }, waiter.waitingSinceNs);
  }

  #publishFirstWaiter(): void {
    const { state, row, workerSlot } = this.#limiter;
    const [first] = this.#waiting;
    state.setFirstWaiting(row, { direction: this.#direction, workerSlot }, first?.waitingSinceNs ?? 0n);
  }
}

/** Bytes that may pass now. Negative if the bucket is in debt or the rate is 0. */
function creditBytesFor(bitsPerSecond: number, sincePaid: bigint): number {
  if (bitsPerSecond === Number.POSITIVE_INFINITY) return bitsPerSecond;
  if (bitsPerSecond === 0) return -1;
  return (
    (Number(sincePaid < BYTES_BURST_NS ? sincePaid : BYTES_BURST_NS) * bitsPerSecond) /
    NS_PER_BYTE_AT_ONE_BIT_PER_SECOND
  );
}

export interface BandwidthBucketOptions {
  readonly direction: Direction;
  /** Called when a reader waits and no reader waited before. */
  onWaiting(bucket: BandwidthBucket): void;
}
