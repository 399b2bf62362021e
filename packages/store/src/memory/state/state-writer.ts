import type { Clock, Logger, Timer } from '@weir/runtime';
import { StoreError } from '../../error.ts';

export interface StateWriterOptions<Part extends string> {
  readonly clock: Clock;
  readonly log: Logger;
  /** Writes a part as it is now. */
  readonly write: (part: Part) => Promise<void>;
}

/** What SIGKILL may cost of the parts that are written in the background. */
const GAP_MS = 1_000;
/** A part that is long to write is written less often, so that writing takes at most a tenth of the time. */
const SHARE = 10;
const RETRY_MS = 5_000;

/** Writes what has changed, one at a time, each change within about a second; `close` writes the rest. */
export class StateWriter<Part extends string> {
  readonly #options: StateWriterOptions<Part>;
  readonly #changed = new Set<Part>();
  #timer: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();
  #gapMs = GAP_MS;
  #failed: unknown;

  constructor(options: StateWriterOptions<Part>) {
    this.#options = options;
  }

  /** The part will be written soon. */
  changed(part: Part): void {
    this.#changed.add(part);
    this.#timer ??= this.#options.clock.setTimeout(() => {
      this.#timer = undefined;
      void this.#writeChanged();
    }, this.#gapMs);
  }

  /** Resolves when the part is written; when that fails, it is said and tried again later. */
  now(part: Part): Promise<void> {
    this.#changed.add(part);
    return this.#writeChanged();
  }

  /** Writes the rest; rejects when that fails. */
  async close(): Promise<void> {
    this.#timer?.cancel();
    await this.#writeChanged();
    this.#timer?.cancel();
    if (this.#failed !== undefined) {
      throw new StoreError('DAMAGED', 'the last changes could not be written to the state directory', {
        cause: this.#failed,
      });
    }
  }

  #writeChanged(): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      const { clock, log, write } = this.#options;
      const started = clock.monotonic();
      for (const part of [...this.#changed]) {
        this.#changed.delete(part);
        try {
          await write(part);
          if (this.#failed !== undefined) log.info({ state: part }, 'the state is written again');
          this.#failed = undefined;
        } catch (error) {
          if (this.#failed === undefined) log.error({ err: error, state: part }, 'the state cannot be written');
          this.#failed = error;
          this.#gapMs = RETRY_MS;
          this.changed(part);
          return;
        }
      }
      this.#gapMs = Math.max(GAP_MS, SHARE * (clock.monotonic() - started));
    });
    return this.#writing;
  }
}
