/** Resumes streams that have used up their read quantum in the next iteration of the event loop. */
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

/** Returns a number that differs between iterations of the event loop. */
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

/** The stream of this worker that has read last: a stream that finds itself here has read alone since its last read. */
export const lastReader: { stream: unknown } = { stream: undefined };
