/** Values that wait until all workers have reached a mark, that is, have applied every command that was posted before the mark. */
export class MarkTracker<T> {
  #waiting: { readonly mark: number; readonly value: T }[] = [];

  /** Marks must not decrease from call to call. */
  add(mark: number, value: T): void {
    this.#waiting.push({ mark, value });
  }

  /** To be called when all workers have reached `mark`. Removes and returns the values that waited for it, oldest first. */
  takeReached(mark: number): T[] {
    const reached = this.#waiting.filter((each) => each.mark <= mark).map(({ value }) => value);
    this.#waiting = this.#waiting.slice(reached.length);
    return reached;
  }
}
