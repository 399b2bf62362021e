import type { Clock, Timer } from '@weir/runtime';

/** An editor writes in several steps: wait for this much quiet after each, but not for ever. */
const QUIET_MS = 15;
const LONGEST_MS = 45;

/** Calls back once after a burst of events. */
export class Quiet {
  readonly #clock: Clock;
  readonly #then: () => void;
  #timer: Timer | undefined;
  #firstAt = 0;

  constructor(clock: Clock, then: () => void) {
    this.#clock = clock;
    this.#then = then;
  }

  happened(): void {
    const now = this.#clock.monotonic();
    if (this.#timer === undefined) this.#firstAt = now;
    this.#timer?.cancel();
    const ms = Math.min(QUIET_MS, Math.max(0, this.#firstAt + LONGEST_MS - now));
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined;
      this.#then();
    }, ms);
  }

  close(): void {
    this.#timer?.cancel();
  }
}
