import type { Meter } from './meter.ts';

/** A read of a shaped stream takes at most what the rate gives in this time. */
const SLICE_SECONDS = 0.05;
const LEAST_SLICE = 2_048;
/** What may pass unasked: as much as the rate gives in this time, and never more than that. */
const OWED_SECONDS = 0.000_5;
const MOST_OWED = 65_536;
/** Streams and datagrams take turns of this length: longer than the tick of those who wait, shorter than what can be saved up. */
const TURN_NS = 20_000_000n;

/** What bytes of a Service in one direction must keep to: its own rate, and its tenant's. */
export class Lane {
  readonly now: () => bigint;
  readonly #service: Meter;
  readonly #tenant: Meter;
  /** Bytes that have passed and are not charged yet. */
  #owed = 0;

  constructor({
    service,
    tenant,
    now,
  }: { readonly service: Meter; readonly tenant: Meter; readonly now: () => bigint }) {
    this.#service = service;
    this.#tenant = tenant;
    this.now = now;
  }

  /** Asked for every chunk: limits come and go while connections are open. */
  get isLimited(): boolean {
    return this.#service.bitsPerSecond !== Infinity || this.#tenant.bitsPerSecond !== Infinity;
  }

  /** A limit of 0: no turn will come unless it is raised. */
  get isShut(): boolean {
    return this.#service.bitsPerSecond === 0 || this.#tenant.bitsPerSecond === 0;
  }

  /** How much a stream may take at a time; Infinity: as it likes. */
  get slice(): number {
    return Math.max(LEAST_SLICE, Math.floor(this.#bytesPerSecond * SLICE_SECONDS));
  }

  /**
   * So many bytes have passed. False: nothing is to be looked at yet. What all workers share is asked only once for many small
   * reads, or when somebody waits: it is what costs, and so little more than the rate passes meanwhile.
   */
  owe(bytes: number): boolean {
    this.#owed += bytes;
    return this.#owed >= this.#mostOwed || this.#service.isWaitedFor || this.#tenant.isWaitedFor;
  }

  /** Pays for what is owed. */
  pay(now: bigint): void {
    const owed = this.#owed;
    this.#owed = 0;
    this.charge(owed, now);
  }

  charge(bytes: number, now: bigint): void {
    if (bytes === 0) return;
    this.#service.charge(bytes, now);
    this.#tenant.charge(bytes, now);
  }

  /** What a stream must wait for first. */
  busy(now: bigint): Meter | undefined {
    return this.#service.isBusy(now) ? this.#service : this.busyAfter(this.#service, now);
  }

  /** What it must wait for when its turn at `meter` has come: the tenant is last, so that nobody goes round and round. */
  busyAfter(meter: Meter, now: bigint): Meter | undefined {
    return meter === this.#service && this.#tenant.isBusy(now) ? this.#tenant : undefined;
  }

  /**
   * For what cannot be paused, such as datagrams: whether so many more bytes pass; if not, they are not charged. Beside streams
   * that wait they may take the credit half of the time, so that neither kind starves the other.
   */
  takes(bytes: number): boolean {
    if (!this.isLimited) return true;
    const now = this.now();
    if (this.#service.isOverdrawn(now) || this.#tenant.isOverdrawn(now)) return false;
    const isWaitedFor = this.#service.isWaitedFor || this.#tenant.isWaitedFor;
    if (isWaitedFor && (now / TURN_NS) % 2n === 0n) return false;
    this.charge(bytes, now);
    return true;
  }

  get #mostOwed(): number {
    return Math.min(MOST_OWED, this.#bytesPerSecond * OWED_SECONDS);
  }

  get #bytesPerSecond(): number {
    return Math.min(this.#service.bitsPerSecond, this.#tenant.bitsPerSecond) / 8;
  }
}
