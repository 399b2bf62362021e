import type { Clock } from '@weir/runtime';

export interface AnswerCacheOptions {
  readonly clock: Clock;
  /** More push out the ones that were not used for longest. */
  readonly most: number;
}

/** Answers that hold for a while. */
export class AnswerCache<T> {
  readonly #options: AnswerCacheOptions;
  readonly #answers = new Map<string, { readonly at: number; readonly value: T }>();

  constructor(options: AnswerCacheOptions) {
    this.#options = options;
  }

  /** The answer, when it is younger than that. */
  get(key: string, ageMs: number): T | undefined {
    const found = this.#answers.get(key);
    if (found === undefined) return undefined;
    this.#answers.delete(key);
    this.#answers.set(key, found);
    return this.#options.clock.monotonic() - found.at < ageMs ? found.value : undefined;
  }

  /** Whether there is an answer, however old. */
  has(key: string): boolean {
    return this.#answers.has(key);
  }

  set(key: string, value: T): void {
    this.#answers.delete(key);
    this.#answers.set(key, { at: this.#options.clock.monotonic(), value });
    for (const oldest of this.#answers.keys()) {
      if (this.#answers.size <= this.#options.most) return;
      this.#answers.delete(oldest);
    }
  }

  delete(key: string): void {
    this.#answers.delete(key);
  }
}
