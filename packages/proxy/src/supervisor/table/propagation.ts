import { propagationSeconds } from '@weir/model/data-plane';
import type { Clock } from '@weir/runtime';

/** Measures how long each change takes from the Kubernetes API to all workers of this proxy. */
export class PropagationLatency {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #listeners = new Set<(seconds: number) => void>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  onSample(listener: (seconds: number) => void): void {
    this.#listeners.add(listener);
  }

  /** To be called when all workers have applied a change made at `changedAt` (milliseconds since the epoch). */
  record(changedAt: number): void {
    const seconds = propagationSeconds(changedAt, this.#clock.now());
    for (const listener of this.#listeners) listener(seconds);
  }
}

/**
 * Holds values until all workers have reached a mark. A worker has reached a mark when it has applied every command
 * that was posted before the mark.
 */
export class MarkTracker<T> {
  #waiting: { readonly mark: number; readonly value: T }[] = [];

  /** Adds a value that waits for `mark`. Marks must not decrease from call to call. */
  add(mark: number, value: T): void {
    this.#waiting.push({ mark, value });
  }

  /**
   * Removes and returns the values whose mark is at most `mark`, oldest first. To be called when all workers have
   * reached `mark`.
   */
  takeReached(mark: number): T[] {
    const reached = this.#waiting.filter((each) => each.mark <= mark).map(({ value }) => value);
    this.#waiting = this.#waiting.slice(reached.length);
    return reached;
  }
}
