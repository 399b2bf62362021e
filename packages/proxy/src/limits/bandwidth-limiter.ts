import { BYTES_BURST_NS, type Limiter } from './limiter.ts';
import type { Direction } from './limiter-state.ts';

/** A read of a shaped stream takes at most what the rate gives in this time. */
const QUANTUM_SECONDS = 0.05;
const MIN_QUANTUM_BYTES = 2_048;
/** What may pass unasked: as much as the rate gives in this time, and never more than that. */
const MAX_UNCHARGED_SECONDS = 0.000_5;
const MAX_UNCHARGED_BYTES = 65_536;
/** Streams and datagrams take turns of this length: longer than the tick of those who wait, shorter than what can be saved up. */
const DATAGRAM_SHARE_PERIOD_NS = 20_000_000n;

/** What bytes of a Service in one direction must keep to: its own rate, and its tenant's. */
export class BandwidthLimiter {
  readonly now: () => bigint;
  readonly #service: BandwidthBucket;
  readonly #tenant: BandwidthBucket;
  /** Bytes that have passed and are not charged yet. */
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

  /** Asked for every chunk: limits come and go while connections are open. */
  get isLimited(): boolean {
    return this.#service.bitsPerSecond !== Infinity || this.#tenant.bitsPerSecond !== Infinity;
  }

  /** A limit of 0: no turn will come unless it is raised. */
  get isBlocked(): boolean {
    return this.#service.bitsPerSecond === 0 || this.#tenant.bitsPerSecond === 0;
  }

  /** How much a stream may take at a time; Infinity: as it likes. */
  get quantumBytes(): number {
    return Math.max(MIN_QUANTUM_BYTES, Math.floor(this.#bytesPerSecond * QUANTUM_SECONDS));
  }

  /**
   * So many bytes have passed. False: nothing is to be looked at yet. What all workers share is asked only once for many small
   * reads, or when somebody waits: it is what costs, and so little more than the rate passes meanwhile.
   */
  defer(bytes: number): boolean {
    this.#unchargedBytes += bytes;
    return this.#unchargedBytes >= this.#maxUnchargedBytes || this.#service.hasWaiters || this.#tenant.hasWaiters;
  }

  /** Pays for what is owed. */
  chargeDeferred(now: bigint): void {
    const owed = this.#unchargedBytes;
    this.#unchargedBytes = 0;
    this.charge(owed, now);
  }

  charge(bytes: number, now: bigint): void {
    if (bytes === 0) return;
    this.#service.charge(bytes, now);
    this.#tenant.charge(bytes, now);
  }

  /** What a stream must wait for first. */
  blockingBucket(now: bigint): BandwidthBucket | undefined {
    return this.#service.mustWait(now) ? this.#service : this.blockingBucketAfter(this.#service, now);
  }

  /** What it must wait for when its turn at `meter` has come: the tenant is last, so that nobody goes round and round. */
  blockingBucketAfter(meter: BandwidthBucket, now: bigint): BandwidthBucket | undefined {
    return meter === this.#service && this.#tenant.mustWait(now) ? this.#tenant : undefined;
  }

  /**
   * For what cannot be paused, such as datagrams: whether so many more bytes pass; if not, they are not charged. Beside streams
   * that wait they may take the credit half of the time, so that neither kind starves the other.
   */
  tryTake(bytes: number): boolean {
    if (!this.isLimited) return true;
    const now = this.now();
    if (this.#service.isOverdrawn(now) || this.#tenant.isOverdrawn(now)) return false;
    const isWaitedFor = this.#service.hasWaiters || this.#tenant.hasWaiters;
    if (isWaitedFor && (now / DATAGRAM_SHARE_PERIOD_NS) % 2n === 0n) return false;
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

/** Whoever has waited longest goes first, over all workers, unless theirs has not come for so long to take the credit. */
const MAX_PRIORITY_NS = 30_000_000n;
const NS_PER_BYTE_AT_ONE_BIT_PER_SECOND = 8e9;

/** Whose reading waits for its turn. */
export interface WaitingReader {
  /** Since when; the meter's own. */
  waitingSinceNs: bigint;
  /** What its last read took: what the next one is likely to take. */
  readonly lastReadBytes: number;
  /** Its turn has come. */
  onServed(meter: BandwidthBucket, now: bigint): void;
}

/** The bytes per second of one tenant or Service in one direction, as one worker sees them: who of its streams waits. */
export class BandwidthBucket {
  readonly #limiter: Limiter;
  readonly #direction: Direction;
  readonly #onWaiting: (meter: BandwidthBucket) => void;
  readonly #waiting = new Set<WaitingReader>();

  constructor(budget: Limiter, { direction, onWaiting }: BandwidthBucketOptions) {
    this.#limiter = budget;
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

  /** Whether a stream must wait: for what has passed to be paid, or behind those that wait already. */
  mustWait(now: bigint): boolean {
    return this.isOverdrawn(now) || (this.hasWaiters && this.bitsPerSecond !== Number.POSITIVE_INFINITY);
  }

  /** Nothing at all may pass now. */
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
   * Lets as many go on as the credit is likely to be enough for, by what each read last, and at least one: what they read
   * beyond it becomes debt.
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

/** Bytes; below 0: nobody's turn has come. */
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
  /** Somebody waits, where nobody did. */
  onWaiting(meter: BandwidthBucket): void;
}
