/** Items by a key that several have. */
export class MultiMap<T> {
  readonly #sets = new Map<string, Set<T>>();

  get(key: string): ReadonlySet<T> {
    return this.#sets.get(key) ?? new Set();
  }

  keys(): Iterable<string> {
    return this.#sets.keys();
  }

  add(key: string, item: T): void {
    const group = this.#sets.get(key) ?? new Set();
    this.#sets.set(key, group.add(item));
  }

  delete(key: string, item: T): void {
    const group = this.#sets.get(key);
    if (group?.delete(item) && group.size === 0) this.#sets.delete(key);
  }
}
