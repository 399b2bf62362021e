/** What is open of somebody; whoever goes through it sees those that are in it then, and they may leave meanwhile. */
export interface SessionCollection<T> extends Iterable<T> {
  readonly size: number;
  add(item: T): unknown;
  delete(item: T): unknown;
}

/**
 * What is open of one Service. Not a Set: one that thousands enter and leave each second is made anew again and again, and its
 * former tables keep those who have left alive until the old generation is collected, which costs more than relaying them.
 */
export class SessionSet<T extends IndexedEntry> implements SessionCollection<T> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  add(item: T): void {
    item.sessionIndex = this.#items.length;
    this.#items.push(item);
  }

  /** Nothing happens when it is not in here. */
  delete(item: T): void {
    const at = item.sessionIndex;
    if (this.#items[at] !== item) return;
    const last = this.#items.pop() as T;
    if (last === item) return;
    this.#items[at] = last;
    last.sessionIndex = at;
  }

  /** Those that are in here now: they may leave meanwhile. */
  [Symbol.iterator](): Iterator<T> {
    return [...this.#items].values();
  }
}

export interface IndexedEntry {
  /** The own of the one book that it is in. */
  sessionIndex: number;
}
