/** Items by a key that several have. */
export class Groups<T> {
  readonly #groups = new Map<string, Set<T>>();

  of(key: string): ReadonlySet<T> {
    return this.#groups.get(key) ?? new Set();
  }

  keys(): Iterable<string> {
    return this.#groups.keys();
  }

  add(key: string, item: T): void {
    const group = this.#groups.get(key) ?? new Set();
    this.#groups.set(key, group.add(item));
  }

  delete(key: string, item: T): void {
    const group = this.#groups.get(key);
    if (group?.delete(item) && group.size === 0) this.#groups.delete(key);
  }
}
