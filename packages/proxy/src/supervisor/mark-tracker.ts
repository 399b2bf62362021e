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
