import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock, Timer } from './clock.ts';

interface PendingTimer {
  readonly dueAt: number;
  readonly order: number;
  readonly fn: () => void;
}

/** A clock for tests: time passes only when the test calls `advance`. */
export class ManualClock implements Clock {
  #now: number;
  #monotonic = 0;
  #order = 0;
  readonly #timers = new Set<PendingTimer>();

  constructor(startMs = 1_700_000_000_000) {
    this.#now = startMs;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  setTimeout(fn: () => void, ms: number): Timer {
    const pending: PendingTimer = { dueAt: this.#monotonic + Math.max(0, ms), order: this.#order++, fn };
    this.#timers.add(pending);
    return { cancel: () => void this.#timers.delete(pending) };
  }

  /** The number of pending timers. A test expects 0 after everything is closed. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /**
   * Advances time by `ms` and runs the due timers in order, each at its due time. Pending promises and immediates run
   * before the first timer and after each timer. If they set a timer that is due within `ms`, this timer runs as well.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    await nextTurn();
    for (let next = this.#nextUntil(end); next !== undefined; next = this.#nextUntil(end)) {
      this.#timers.delete(next);
      this.#moveTo(next.dueAt);
      next.fn();
      await nextTurn();
    }
    this.#moveTo(end);
  }

  /** Moves the wall clock forward or back, as an operator or NTP does. Does not affect `monotonic` or the timers. */
  jumpWallClock(ms: number): void {
    this.#now += ms;
  }

  #nextUntil(end: number): PendingTimer | undefined {
    let first: PendingTimer | undefined;
    for (const pending of this.#timers) {
      if (pending.dueAt > end) continue;
      if (
        first === undefined ||
        pending.dueAt < first.dueAt ||
        (pending.dueAt === first.dueAt && pending.order < first.order)
      ) {
        first = pending;
      }
    }
    return first;
  }

  #moveTo(monotonic: number): void {
    this.#now += monotonic - this.#monotonic;
    this.#monotonic = monotonic;
  }
}
