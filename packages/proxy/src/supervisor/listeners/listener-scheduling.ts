import type { ListenerKey, Matcher } from '@weir/model/data-plane';
import { backoffMs, type Clock } from '@weir/runtime';

export interface DeferredListenersOptions {
  readonly matcher: Pick<Matcher, 'listeners'>;
  /**
   * Reports whether a table change is still being applied. Until the change is applied completely, routes may be
   * missing.
   */
  readonly isPartial: () => boolean;
}

/**
 * Holds back shared listeners while a large change is being applied, because a client of a Service that is not applied
 * yet would get the TLS alert unrecognized_name and would not retry.
 */
export class DeferredListeners {
  readonly #options: DeferredListenersOptions;
  readonly #deferred = new Set<ListenerKey>();

  constructor(options: DeferredListenersOptions) {
    this.#options = options;
  }

  /**
   * Returns the listeners of `keys` that may be reconciled now. If no change is being applied, also returns the
   * listeners that were deferred before.
   */
  due(keys: Iterable<ListenerKey>): ReadonlySet<ListenerKey> {
    const { matcher, isPartial } = this.#options;
    const due = new Set(keys);
    if (!isPartial()) {
      for (const key of this.#deferred) due.add(key);
      this.#deferred.clear();
      return due;
    }
    for (const key of due) {
      if (matcher.listeners.get(key)?.isShared !== true) continue;
      due.delete(key);
      this.#deferred.add(key);
    }
    return due;
  }
}

const RETRY_BACKOFF = { minMs: 1_000, maxMs: 15_000 };

/** Decides when to retry listeners that failed to open. The time between retries grows exponentially. */
export class BindRetries {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #failures = new Map<ListenerKey, number>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Records a failure. Returns when to retry, in milliseconds of the monotonic clock. */
  nextRetryAt(key: ListenerKey): number {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    return this.#clock.monotonic() + backoffMs(failures, { ...RETRY_BACKOFF, random: Math.random });
  }

  forget(key: ListenerKey): void {
    this.#failures.delete(key);
  }
}
