import type { ListenerKey } from '@weir/model/data-plane';
import { backoffMs, type Clock } from '@weir/runtime';

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
