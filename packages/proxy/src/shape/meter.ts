import { type Budget, BYTES_BURST_NS } from '../admit/budget.ts';
import type { Direction } from '../admit/limit-sheet.ts';

/** Whoever has waited longest goes first, over all workers, unless theirs has not come for so long to take the credit. */
const PATIENCE_NS = 30_000_000n;
const NS_PER_BYTE_AT_ONE_BIT = 8e9;

/** Whose reading waits for its turn. */
export interface Waiter {
  /** Since when; the meter's own. */
  since: bigint;
  /** What its last read took: what the next one is likely to take. */
  readonly lastBytes: number;
  /** Its turn has come. */
  onServed(meter: Meter, now: bigint): void;
}

/** The bytes per second of one tenant or Service in one direction, as one worker sees them: who of its streams waits. */
export class Meter {
  readonly #budget: Budget;
  readonly #direction: Direction;
  readonly #onWaiting: (meter: Meter) => void;
  readonly #waiting = new Set<Waiter>();

  constructor(budget: Budget, { direction, onWaiting }: MeterOptions) {
    this.#budget = budget;
    this.#direction = direction;
    this.#onWaiting = onWaiting;
  }

  get bitsPerSecond(): number {
    return this.#budget.bitsPerSecond(this.#direction);
  }

  get isWaitedFor(): boolean {
    return this.#waiting.size > 0;
  }

  charge(bytes: number, now: bigint): void {
    if (this.bitsPerSecond !== Number.POSITIVE_INFINITY) this.#budget.charge(this.#direction, bytes, now);
  }

  /** Whether a stream must wait: for what has passed to be paid, or behind those that wait already. */
  isBusy(now: bigint): boolean {
    return this.isOverdrawn(now) || (this.isWaitedFor && this.bitsPerSecond !== Number.POSITIVE_INFINITY);
  }

  /** Nothing at all may pass now. */
  isOverdrawn(now: bigint): boolean {
    const { bitsPerSecond } = this;
    if (bitsPerSecond === Number.POSITIVE_INFINITY) return false;
    return bitsPerSecond === 0 || this.#budget.paidUntil(this.#direction) > now;
  }

  hold(waiter: Waiter, now: bigint): void {
    waiter.since = now;
    this.#waiting.add(waiter);
    if (this.#waiting.size > 1) return;
    this.#tellFirst();
    this.#onWaiting(this);
  }

  forget(waiter: Waiter): void {
    if (this.#waiting.delete(waiter)) this.#tellFirst();
  }

  /**
   * Lets as many go on as the credit is likely to be enough for, by what each read last, and at least one: what they read
   * beyond it becomes debt.
   */
  serve(now: bigint): void {
    const sincePaid = now - this.#budget.paidUntil(this.#direction);
    let credit = creditFor(this.bitsPerSecond, sincePaid);
    const served: Waiter[] = [];
    for (const waiter of this.#waiting) {
      if (credit < 0 || (sincePaid < PATIENCE_NS && this.#isLater(waiter))) break;
      credit -= waiter.lastBytes;
      served.push(waiter);
    }
    for (const waiter of served) this.#waiting.delete(waiter);
    if (served.length > 0) this.#tellFirst();
    for (const waiter of served) waiter.onServed(this, now);
  }

  #isLater(waiter: Waiter): boolean {
    const { sheet, row, column } = this.#budget;
    return sheet.isSomebodyBefore(row, { direction: this.#direction, column }, waiter.since);
  }

  #tellFirst(): void {
    const { sheet, row, column } = this.#budget;
    const [first] = this.#waiting;
    sheet.setFirstWaiting(row, { direction: this.#direction, column }, first?.since ?? 0n);
  }
}

/** Bytes; below 0: nobody's turn has come. */
function creditFor(bitsPerSecond: number, sincePaid: bigint): number {
  if (bitsPerSecond === Number.POSITIVE_INFINITY) return bitsPerSecond;
  if (bitsPerSecond === 0) return -1;
  return (Number(sincePaid < BYTES_BURST_NS ? sincePaid : BYTES_BURST_NS) * bitsPerSecond) / NS_PER_BYTE_AT_ONE_BIT;
}

export interface MeterOptions {
  readonly direction: Direction;
  /** Somebody waits, where nobody did. */
  onWaiting(meter: Meter): void;
}
