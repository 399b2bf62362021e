/**
 * Of which Services it has to be looked at whether they say what they should, each by one writer at a time. Keys are those of the source.
 * Times are of a clock that never jumps, in milliseconds.
 */
export class PendingUpdates {
  /** In the order in which they came. */
  readonly #pending = new Set<string>();
  readonly #inProgress = new Set<string>();
  /** Could not be told. They come last, or a few would keep all others waiting. */
  readonly #failed = new Set<string>();
  /** Those of them whose turn is still to come. */
  readonly #retries = new Set<string>();
  /** Changed while they were told: whoever watches them is about to say how. */
  readonly #conflicted = new Set<string>();
  /** When they are looked at whatever happens, the earliest first. */
  readonly #dueAt = new Map<string, number>();

  /** Something about it is another than before: also while it is being told. */
  add(key: string): void {
    if (!this.#failed.has(key)) this.#pending.add(key);
  }

  /** It is gone. */
  remove(key: string): void {
    for (const keys of [this.#pending, this.#failed, this.#retries, this.#conflicted, this.#dueAt]) keys.delete(key);
  }

  /** A new turn: what is due by now is open, and what failed is tried once more. */
  startPass(now: number): void {
    for (const key of this.#conflicted) this.add(key);
    this.#conflicted.clear();
    for (const [key, at] of this.#dueAt) {
      if (at > now) break;
      this.#dueAt.delete(key);
      this.add(key);
    }
    this.#retries.clear();
    for (const key of this.#failed) this.#retries.add(key);
  }

  /** Who is next; one of the methods below says what became of it. Undefined: nobody, in this turn. */
  next(): string | undefined {
    for (const key of this.#pending) {
      if (this.#inProgress.has(key)) continue;
      this.#pending.delete(key);
      this.#inProgress.add(key);
      return key;
    }
    for (const key of this.#retries) {
      if (this.#inProgress.has(key)) continue;
      this.#retries.delete(key);
      // What comes while it is tried is looked at after it.
      this.#failed.delete(key);
      this.#inProgress.add(key);
      return key;
    }
    return undefined;
  }

  /** `isStill`: it and its view are what was told; else it is open again. */
  complete(key: string, { isStill }: { readonly isStill: boolean }): void {
    this.#finish(key);
    if (isStill) this.#pending.delete(key);
  }

  /** To be looked at again then, and before if it changes. `at` never goes back from one call to the next. */
  scheduleAt(key: string, at: number): void {
    this.#dueAt.delete(key);
    this.#dueAt.set(key, at);
  }

  /** With the next turn. */
  conflicted(key: string): void {
    this.#finish(key);
    this.#conflicted.add(key);
  }

  failed(key: string): void {
    this.#finish(key);
    this.#pending.delete(key);
    this.#failed.add(key);
  }

  #finish(key: string): void {
    this.#inProgress.delete(key);
    this.#dueAt.delete(key);
  }
}
