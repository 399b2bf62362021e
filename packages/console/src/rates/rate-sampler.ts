import { monthOf } from '@weir/model';
import { type Clock, errorMessage, type Logger, wait } from '@weir/runtime';
import type { Store } from '@weir/store';
import { addSample, EMPTY_RATE_HISTORY, type RateHistory } from './rate-history.ts';

export interface RateSamplerOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}

const SAMPLE_INTERVAL_MS = 1_000;

/** How long sampling continues after the last watcher has left, so that a reloaded page gets rates without a gap. */
const UNWATCHED_SAMPLING_MS = 10_000;

/** Reads the ledger once a second while a client watches the rates. Does not read the ledger without watchers, to spare the store. */
export class RateSampler {
  readonly #options: RateSamplerOptions;
  readonly #closing = new AbortController();
  readonly #listeners = new Set<(history: RateHistory) => void>();
  #history: RateHistory = EMPTY_RATE_HISTORY;
  #running: Promise<void> | undefined;
  #lastWatchedAt = Number.NEGATIVE_INFINITY;

  constructor(options: RateSamplerOptions) {
    this.#options = options;
  }

  get history(): RateHistory {
    return this.#history;
  }

  /** Calls `listener` after every sample. Returns the function that removes the listener. */
  watch(listener: (history: RateHistory) => void): () => void {
    this.#listeners.add(listener);
    if (!this.#closing.signal.aborted) this.#running ??= this.#run().finally(() => (this.#running = undefined));
    return () => {
      this.#listeners.delete(listener);
      this.#lastWatchedAt = this.#options.clock.monotonic();
    };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#closing;
    let isFailing = false;
    while (!signal.aborted && this.#isWatched()) {
      try {
        await this.#sample();
        isFailing = false;
      } catch (error) {
        if (!isFailing)
          log.warn({ reason: errorMessage(error) }, 'failed to read the ledger; rates stop until a retry succeeds');
        isFailing = true;
      }
      await wait(clock, SAMPLE_INTERVAL_MS, signal).catch(() => {});
    }
  }

  async #sample(): Promise<void> {
    const { store, clock, log } = this.#options;
    const month = monthOf(clock.now());
    const rows = await store.usage.rows(month);
    this.#history = addSample(this.#history, { at: clock.now(), month, rows });
    for (const listener of this.#listeners) {
      try {
        listener(this.#history);
      } catch (error) {
        log.warn({ reason: errorMessage(error) }, 'failed to notify a watcher of rates');
      }
    }
  }

  #isWatched(): boolean {
    return this.#listeners.size > 0 || this.#options.clock.monotonic() - this.#lastWatchedAt < UNWATCHED_SAMPLING_MS;
  }
}
