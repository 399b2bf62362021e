/** Heartbeats and cut-offs wait for no more than this. */
const TURN_MS = 10;

/** Does things one after the other, each in the steps that it says itself, and only so long in one turn of the event loop. */
export class TurnTaker {
  readonly #now: () => number;
  #waiting: (() => Iterable<void>)[] = [];
  #running: Iterator<void> | undefined;
  /** It goes on in a turn to come. */
  #isDue = false;

  /** Milliseconds that never go back. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Done when this returns, if none is under way and it is short. */
  add(begin: () => Iterable<void>): void {
    this.#waiting.push(begin);
    if (!this.#isDue) this.#run();
  }

  readonly #run = (): void => {
    this.#isDue = false;
    const endsAt = this.#now() + TURN_MS;
    do {
      this.#running ??= this.#waiting.shift()?.()[Symbol.iterator]();
      if (this.#running === undefined) return;
      if (this.#running.next().done === true) this.#running = undefined;
    } while (this.#now() < endsAt);
    this.#isDue = this.#running !== undefined || this.#waiting.length > 0;
    if (this.#isDue) setImmediate(this.#run);
  };
}
