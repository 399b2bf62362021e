/** What is asked twice at once is asked once. */
export class SingleFlight<T> {
  readonly #asking = new Map<string, Promise<T>>();

  get size(): number {
    return this.#asking.size;
  }

  ask(key: string, ask: () => Promise<T>): Promise<T> {
    const under = this.#asking.get(key);
    if (under !== undefined) return under;
    const asking = ask().finally(() => this.#asking.delete(key));
    this.#asking.set(key, asking);
    return asking;
  }
}
