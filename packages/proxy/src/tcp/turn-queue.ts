/** Whoever has read its share of this turn of the event loop goes on in the next one, behind the others. */
export class NextIterationQueue<T> {
  readonly #resume: (item: T) => void;
  #waiting: T[] = [];

  constructor(resume: (item: T) => void) {
    this.#resume = resume;
  }

  add(item: T): void {
    if (this.#waiting.length === 0) setImmediate(this.#runAll);
    this.#waiting.push(item);
  }

  readonly #runAll = (): void => {
    const turn = this.#waiting;
    this.#waiting = [];
    for (const item of turn) this.#resume(item);
  };
}
