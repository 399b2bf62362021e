import type { Clock } from '@weir/runtime';

export interface TtlCacheOptions {
  readonly clock: Clock;
  /** More push out the ones that were not used for longest. */
  readonly maxEntries: number;
}

/** Answers that hold for a while. */
export class TtlCache<T> {
  readonly #options: TtlCacheOptions;
  readonly #entries = new Map<string, { readonly at: number; readonly value: T }>();

  constructor(options: TtlCacheOptions) {
    this.#options = options;
  }

  /** The answer, when it is younger than that. */
  get(key: string, ageMs: number): T | undefined {
    const found = this.#entries.get(key);
    if (found === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, found);
    return this.#options.clock.monotonic() - found.at < ageMs ? found.value : undefined;
  }

  /** Whether there is an answer, however old. */
  has(key: string): boolean {
    return this.#entries.has(key);
  }

  set(key: string, value: T): void {
    this.#entries.delete(key);
    this.#entries.set(key, { at: this.#options.clock.monotonic(), value });
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#options.maxEntries) return;
      this.#entries.delete(oldest);
    }
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}

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
