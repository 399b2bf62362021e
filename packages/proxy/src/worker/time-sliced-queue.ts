/**
 * Runs tasks in order and step by step. In one turn of the event loop, runs steps for at most `sliceMs`, but at least
 * one step. The remaining steps run in later turns, after the events of sockets.
 */
export class TimeSlicedQueue {
  readonly #sliceMs: number;
  readonly #now: () => number;
  #tasks: Iterator<void>[] = [];
  #nextTask = 0;
  /** Whether a slice has begun in this turn of the event loop. The slice ends at `#sliceEndsAt`. */
  #hasSlice = false;
  #sliceEndsAt = 0;

  /** `now` returns milliseconds of a clock that never goes back. */
  constructor({ sliceMs, now }: { readonly sliceMs: number; readonly now: () => number }) {
    this.#sliceMs = sliceMs;
    this.#now = now;
  }

  get isBusy(): boolean {
    return this.#tasks.length > 0;
  }

  /**
   * Adds a task. Each iteration of the task is one step. Runs steps of the task before `add` returns if no other task
   * waits and the slice has time left.
   */
  add(task: Iterable<void>): void {
    this.#tasks.push(task[Symbol.iterator]());
    if (this.#tasks.length > 1) return;
    if (!this.#hasSlice) this.#beginSlice();
    else if (this.#now() >= this.#sliceEndsAt) return;
    this.#run();
  }

  #beginSlice(): void {
    this.#hasSlice = true;
    this.#sliceEndsAt = this.#now() + this.#sliceMs;
    setImmediate(this.#onNextTurn);
  }

  readonly #onNextTurn = (): void => {
    this.#hasSlice = false;
    if (!this.isBusy) return;
    this.#beginSlice();
    this.#run();
  };

  #run(): void {
    do {
      if (this.#tasks[this.#nextTask]?.next().done === true) this.#removeTask();
    } while (this.isBusy && this.#now() < this.#sliceEndsAt);
  }

  #removeTask(): void {
    this.#nextTask += 1;
    if (this.#nextTask < this.#tasks.length) return;
    this.#tasks = [];
    this.#nextTask = 0;
  }
}

// The offset between the kernel's monotonic clock and `performance.now()`, which starts at 0 in each worker thread.
const startedAtMs = Number(process.hrtime.bigint() / 1_000n) / 1_000 - performance.now();

/** Returns milliseconds of the kernel's monotonic clock, which is the same in all threads of this process. */
export function monotonicMs(): number {
  return startedAtMs + performance.now();
}
