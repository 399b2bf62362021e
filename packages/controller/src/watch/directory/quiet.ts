import type { Clock, Timer } from '@weir/runtime';

/** An editor writes in several steps: wait for this much quiet after each, but not for ever. */
const DEBOUNCE_MS = 15;
const MAX_DEBOUNCE_MS = 45;

/** Calls back once after a burst of events. */
export class Debounce {
  readonly #clock: Clock;
  readonly #callback: () => void;
  #timer: Timer | undefined;
  #firstAt = 0;

  constructor(clock: Clock, then: () => void) {
    this.#clock = clock;
    this.#callback = then;
  }

  trigger(): void {
    const now = this.#clock.monotonic();
    if (this.#timer === undefined) this.#firstAt = now;
    this.#timer?.cancel();
    const ms = Math.min(DEBOUNCE_MS, Math.max(0, this.#firstAt + MAX_DEBOUNCE_MS - now));
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined;
      this.#callback();
    }, ms);
  }

  close(): void {
    this.#timer?.cancel();
  }
}
