/**
 * The queue of Services whose status must be compared with the desired status. At most one writer handles a Service at a time. A
 * pass is one call of `write` of the status sink. Keys are the keys of the source; times are milliseconds of the monotonic clock.
 */
export class PendingUpdates {
  /** The Services that are due, in order of arrival. */
  readonly #pending = new Set<string>();
  readonly #inProgress = new Set<string>();
  /** Services whose last write failed. They come last, so that a few failing Services do not delay all others. */
  readonly #failed = new Set<string>();
  /** The failed Services that this pass has not tried again yet. */
  readonly #retries = new Set<string>();
  /** Services that changed during their write; the watch will deliver the change. */
  readonly #conflicted = new Set<string>();
  /** The times at which Services are due even if nothing changes, the earliest first. */
  readonly #dueAt = new Map<string, number>();

  /** Call this when the Service or its view has changed, also while its status is being written. */
  add(key: string): void {
    if (!this.#failed.has(key)) this.#pending.add(key);
  }

  remove(key: string): void {
    for (const keys of [this.#pending, this.#failed, this.#retries, this.#conflicted, this.#dueAt]) keys.delete(key);
  }

  /** Starts a pass: Services that are due become pending, and failed Services are tried once more. */
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

  /** Returns the next Service, whose result the caller reports by a method below; undefined if this pass has no more. */
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
      // A change during the write makes the Service pending, which `add` refuses for failed Services.
      this.#failed.delete(key);
      this.#inProgress.add(key);
      return key;
    }
    return undefined;
  }

  /**
   * Call this after the write. `isCurrent`: the Service and its view have not changed since; otherwise a Service that changed stays
   * pending.
   */
  complete(key: string, { isCurrent }: { readonly isCurrent: boolean }): void {
    this.#finish(key);
    if (isCurrent) this.#pending.delete(key);
  }

  /** Makes the Service due at `at`, and earlier if it changes. `at` must not decrease from call to call. */
  scheduleAt(key: string, at: number): void {
    this.#dueAt.delete(key);
    this.#dueAt.set(key, at);
  }

  /** Makes the Service pending again in the next pass. */
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
