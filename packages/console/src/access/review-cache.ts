import type { Clock } from '@weir/runtime';

export interface TtlCacheOptions {
  readonly clock: Clock;
  /** Maximum number of entries. The least recently used entry is removed first. */
  readonly maxEntries: number;
}

/** A least-recently-used cache. The caller of `get` chooses the maximum age of the value. */
export class TtlCache<T> {
  readonly #options: TtlCacheOptions;
  readonly #entries = new Map<string, { readonly at: number; readonly value: T }>();

  constructor(options: TtlCacheOptions) {
    this.#options = options;
  }

  /** Returns the value, or undefined if the value is missing or at least `maxAgeMs` old. */
  get(key: string, maxAgeMs: number): T | undefined {
    const found = this.#entries.get(key);
    if (found === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, found);
    return this.#options.clock.monotonic() - found.at < maxAgeMs ? found.value : undefined;
  }

  /** Whether the cache has a value for the key, no matter how old the value is. */
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

/** Runs at most one call per key at a time. Callers with the same key share the result of the running call. */
export class SingleFlight<T> {
  readonly #running = new Map<string, Promise<T>>();

  get size(): number {
    return this.#running.size;
  }

  run(key: string, call: () => Promise<T>): Promise<T> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const started = call().finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }
}
