/** A map from a key to a set of items. */
export class MultiMap<T> {
  readonly #sets = new Map<string, Set<T>>();

  get(key: string): ReadonlySet<T> {
    return this.#sets.get(key) ?? new Set();
  }

  keys(): Iterable<string> {
    return this.#sets.keys();
  }

  add(key: string, item: T): void {
    const items = this.#sets.get(key) ?? new Set();
    this.#sets.set(key, items.add(item));
  }

  delete(key: string, item: T): void {
    const items = this.#sets.get(key);
    if (items?.delete(item) && items.size === 0) this.#sets.delete(key);
  }
}
