/** What is asked twice at once is asked once. */
export class SingleFlight<T> {
  readonly #running = new Map<string, Promise<T>>();

  get size(): number {
    return this.#running.size;
  }

  run(key: string, ask: () => Promise<T>): Promise<T> {
    const under = this.#running.get(key);
    if (under !== undefined) return under;
    const asking = ask().finally(() => this.#running.delete(key));
    this.#running.set(key, asking);
    return asking;
  }
}
