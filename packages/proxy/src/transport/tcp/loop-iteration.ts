/**
 * Calls `resume` for each added item in the next iteration of the event loop, for example for a stream that has used up
 * its read quantum.
 */
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
    const items = this.#waiting;
    this.#waiting = [];
    for (const item of items) this.#resume(item);
  };
}

let iteration = 1;
let isWatched = false;

/**
 * Returns a number that stays the same during one iteration of the event loop and is different in every other
 * iteration.
 */
export function currentLoopIteration(): number {
  if (!isWatched) {
    isWatched = true;
    setImmediate(endIteration);
  }
  return iteration;
}

function endIteration(): void {
  isWatched = false;
  iteration += 1;
}

/**
 * The stream of this worker that has read last. If a stream finds itself here when it reads again, no other stream has
 * read in between.
 */
export const lastReader: { stream: unknown } = { stream: undefined };
