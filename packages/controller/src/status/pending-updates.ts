/** How long a Service whose write failed waits for the next attempt. The time doubles with each failure. */
const MIN_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

interface FailedUpdate {
  readonly failures: number;
  readonly retryAt: number;
}

/**
 * The queue of Services whose status must be compared with the desired status. At most one writer handles a Service at a time. A pass
 * is one call of `StatusSink.write`. Keys are the keys of the source; times are milliseconds of the monotonic clock.
 */
export class PendingUpdates {
  /** The Services that are due, in order of arrival. */
  readonly #pending = new Set<string>();
  readonly #inProgress = new Set<string>();
  /** Services whose last write failed. These Services are written last, so that a few failing Services do not delay the other Services. */
  readonly #failed = new Map<string, FailedUpdate>();
  /** How often in a row the write of a Service in progress has failed. */
  readonly #failuresInProgress = new Map<string, number>();
  /** The failed Services that this pass has not tried again yet. */
  readonly #retries = new Set<string>();
  /** Services that changed during their write; the watch will deliver the change. */
  readonly #conflicted = new Set<string>();
  /** The time at which each Service is due even if nothing changes, earliest first. */
  readonly #dueAt = new Map<string, number>();

  /** Whether a Service waits for another attempt after a failed write. */
  get hasFailed(): boolean {
    return this.#failed.size > 0;
  }

  /** Makes the Service pending. Call this when the Service or its view has changed, even while its status is being written. */
  add(key: string): void {
    if (!this.#failed.has(key)) this.#pending.add(key);
  }

  remove(key: string): void {
    for (const keys of [this.#pending, this.#failed, this.#retries, this.#conflicted, this.#dueAt]) keys.delete(key);
    this.#failuresInProgress.delete(key);
  }

  /** Starts a pass: Services that are due become pending, and failed Services whose retry is due are tried again. */
  startPass(now: number): void {
    for (const key of this.#conflicted) this.add(key);
    this.#conflicted.clear();
    for (const [key, at] of this.#dueAt) {
      if (at > now) break;
      this.#dueAt.delete(key);
      this.add(key);
    }
    this.#retries.clear();
    for (const [key, { retryAt }] of this.#failed) if (retryAt <= now) this.#retries.add(key);
  }

  /**
   * Returns the next Service; undefined if this pass has no more. After the write, call `complete`, `conflicted` or `failed` for the
   * Service.
   */
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
      // Without this line, `add` would ignore a change during the write, because `add` ignores failed Services.
      this.#failuresInProgress.set(key, this.#failed.get(key)?.failures ?? 0);
      this.#failed.delete(key);
      this.#inProgress.add(key);
      return key;
    }
    return undefined;
  }

  /**
   * Call this after the write. `isCurrent` says whether the write took the latest Service and view into account. If not, a Service
   * that changed during the write stays pending.
   */
  complete(key: string, { isCurrent }: { readonly isCurrent: boolean }): void {
    this.#finish(key);
    if (isCurrent) this.#pending.delete(key);
  }

  /** Makes the Service due at `at`, or earlier if the Service or its view changes. `at` must not decrease from call to call. */
  scheduleAt(key: string, at: number): void {
    this.#dueAt.delete(key);
    this.#dueAt.set(key, at);
  }

  /** Makes the Service pending again in the next pass. */
  conflicted(key: string): void {
    this.#finish(key);
    this.#conflicted.add(key);
  }

  /** Tries the Service again in the next pass. Call this if the API server is unreachable, so that the next pass waits. */
  interrupted(key: string): void {
    this.#fail(key, { failures: this.#failuresInProgress.get(key) ?? 0, retryAt: Number.NEGATIVE_INFINITY });
  }

  /** Tries the Service again after a time that grows with each failure. Call this if only the write of this Service failed. */
  failed(key: string, now: number): void {
    const failures = (this.#failuresInProgress.get(key) ?? 0) + 1;
    this.#fail(key, {
      failures,
      retryAt: now + Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** Math.min(failures - 1, 30)),
    });
  }

  #fail(key: string, update: FailedUpdate): void {
    this.#finish(key);
    this.#pending.delete(key);
    this.#failed.set(key, update);
  }

  #finish(key: string): void {
    this.#inProgress.delete(key);
    this.#failuresInProgress.delete(key);
    this.#dueAt.delete(key);
  }
}
