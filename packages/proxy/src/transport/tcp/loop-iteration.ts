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

let iteration = 1;
let isWatched = false;

/** A number that is another one in each turn of the event loop. */
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

/** The stream of this worker that has read last, of whatever kind: who finds itself here has been alone since its last read. */
export const lastReader: { stream: unknown } = { stream: undefined };
