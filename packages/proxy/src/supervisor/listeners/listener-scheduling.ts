import type { ListenerKey, Matcher } from '@weir/model/data-plane';
import { backoffMs, type Clock } from '@weir/runtime';

export interface DeferredListenersOptions {
  readonly matcher: Pick<Matcher, 'listeners'>;
  /** A large change is being taken in: more routes are about to come. */
  readonly isPartial: () => boolean;
}

/**
 * Listeners that several Services share wait until all who share them are here: a client of one who is not would be told that its
 * name is unknown, and not try again.
 */
export class DeferredListeners {
  readonly #options: DeferredListenersOptions;
  readonly #deferred = new Set<ListenerKey>();

  constructor(options: DeferredListenersOptions) {
    this.#options = options;
  }

  /** Those of `keys` whose turn is now, and those that waited for it. */
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

/** When ports that could not be opened are tried again: later each time, until one could be. */
export class BindRetries {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #failures = new Map<ListenerKey, number>();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** It failed once more. Returns when to try again, by the monotonic clock. */
  nextRetryAt(key: ListenerKey): number {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    return this.#clock.monotonic() + backoffMs(failures, { ...RETRY_BACKOFF, random: Math.random });
  }

  forget(key: ListenerKey): void {
    this.#failures.delete(key);
  }
}
