/** Heartbeats and cut-offs wait for no more than this. */
const MAX_SLICE_MS = 10;

/** Does things one after the other, each in the steps that it says itself, and only so long in one turn of the event loop. */
export class TimeSlicedQueue {
  readonly #now: () => number;
  #pending: (() => Iterable<void>)[] = [];
  #running: Iterator<void> | undefined;
  /** It goes on in a turn to come. */
  #isScheduled = false;

  /** Milliseconds that never go back. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Done when this returns, if none is under way and it is short. */
  add(begin: () => Iterable<void>): void {
    this.#pending.push(begin);
    if (!this.#isScheduled) this.#run();
  }

  readonly #run = (): void => {
    this.#isScheduled = false;
    const endsAt = this.#now() + MAX_SLICE_MS;
    do {
      this.#running ??= this.#pending.shift()?.()[Symbol.iterator]();
      if (this.#running === undefined) return;
      if (this.#running.next().done === true) this.#running = undefined;
    } while (this.#now() < endsAt);
    this.#isScheduled = this.#running !== undefined || this.#pending.length > 0;
    if (this.#isScheduled) setImmediate(this.#run);
  };
}
