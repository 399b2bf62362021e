import { type Budget, BYTES_BURST_NS } from '../admit/budget.ts';
import type { Direction } from '../admit/limit-sheet.ts';
import type { Throttle } from './throttle.ts';

/** Whoever has waited longest goes first, over all workers, unless theirs has not come for so long to take the credit. */
const PATIENCE_NS = 30_000_000n;
const NS_PER_BYTE_AT_ONE_BIT = 8e9;

/** The bytes per second of one tenant or Service in one direction, as one worker sees them: who of its streams waits. */
export class Meter {
  readonly #budget: Budget;
  readonly #direction: Direction;
  readonly #onWaiting: (meter: Meter) => void;
  readonly #waiting = new Set<Throttle>();

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

  hold(throttle: Throttle, now: bigint): void {
    throttle.since = now;
    this.#waiting.add(throttle);
    if (this.#waiting.size > 1) return;
    this.#tellFirst();
    this.#onWaiting(this);
  }

  forget(throttle: Throttle): void {
    if (this.#waiting.delete(throttle)) this.#tellFirst();
  }

  /**
   * Lets as many go on as the credit is likely to be enough for, by what each read last, and at least one: what they read
   * beyond it becomes debt.
   */
  serve(now: bigint): void {
    const sincePaid = now - this.#budget.paidUntil(this.#direction);
    let credit = creditFor(this.bitsPerSecond, sincePaid);
    const served: Throttle[] = [];
    for (const throttle of this.#waiting) {
      if (credit < 0 || (sincePaid < PATIENCE_NS && this.#isLater(throttle))) break;
      credit -= throttle.lastBytes;
      served.push(throttle);
    }
    for (const throttle of served) this.#waiting.delete(throttle);
    if (served.length > 0) this.#tellFirst();
    for (const throttle of served) throttle.onServed(this, now);
  }

  #isLater(throttle: Throttle): boolean {
    const { sheet, row, column } = this.#budget;
    return sheet.isSomebodyBefore(row, { direction: this.#direction, column }, throttle.since);
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
