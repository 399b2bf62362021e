import { BYTES_BURST_NS, type Limiter } from '../admit/budget.ts';
import type { Direction } from '../admit/limit-sheet.ts';

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
