/** Entries by id, of which there is mostly one: a map for each of thousands of Services would be larger than what is in it. */
export class SmallEntryMap<E extends { readonly id: string }> {
  #only: E | undefined;
  /** As soon as there were two at a time. */
  #multiple: Map<string, E> | undefined;

  get isEmpty(): boolean {
    return this.#only === undefined && (this.#multiple === undefined || this.#multiple.size === 0);
  }

  /** In the order in which they came. */
  values(): Iterable<E> {
    return this.#multiple?.values() ?? (this.#only === undefined ? [] : [this.#only]);
  }

  put(entry: E): void {
    const only = this.#only;
    if (this.#multiple !== undefined) this.#multiple.set(entry.id, entry);
    else if (only === undefined || only.id === entry.id) this.#only = entry;
    else {
      this.#multiple = new Map([only, entry].map((each) => [each.id, each]));
      this.#only = undefined;
    }
  }

  delete(id: string): void {
    this.#multiple?.delete(id);
    if (this.#only?.id === id) this.#only = undefined;
  }
}
