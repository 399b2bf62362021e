import type { BandwidthBucket } from './meter.ts';

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
