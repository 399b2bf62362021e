import type { Clock, Logger, Timer } from '@weir/runtime';
import { StoreError } from '../../error.ts';

export interface StateWriterOptions<Part extends string> {
  readonly clock: Clock;
  readonly log: Logger;
  /** Writes a part as it is now. */
  readonly write: (part: Part) => Promise<void>;
}

/** What SIGKILL may cost of the parts that are written in the background. */
const WRITE_INTERVAL_MS = 1_000;
/** A part that is long to write is written less often, so that writing takes at most a tenth of the time. */
const MIN_INTERVAL_PER_WRITE_TIME = 10;
const WRITE_RETRY_INTERVAL_MS = 5_000;

/** Writes what has changed, one at a time, each change within about a second; `close` writes the rest. */
export class StateWriter<Part extends string> {
  readonly #options: StateWriterOptions<Part>;
  readonly #pendingSections = new Set<Part>();
  #timer: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();
  #intervalMs = WRITE_INTERVAL_MS;
  #lastError: unknown;

  constructor(options: StateWriterOptions<Part>) {
    this.#options = options;
  }

  /** The part will be written soon. */
  writeSoon(part: Part): void {
    this.#pendingSections.add(part);
    this.#timer ??= this.#options.clock.setTimeout(() => {
      this.#timer = undefined;
      void this.#writePending();
    }, this.#intervalMs);
  }

  /** Resolves when the part is written; when that fails, it is said and tried again later. */
  writeNow(part: Part): Promise<void> {
    this.#pendingSections.add(part);
    return this.#writePending();
  }

  /** Writes the rest; rejects when that fails. */
  async close(): Promise<void> {
    this.#timer?.cancel();
    await this.#writePending();
    this.#timer?.cancel();
    if (this.#lastError !== undefined) {
      throw new StoreError('DAMAGED', 'the last changes could not be written to the state directory', {
        cause: this.#lastError,
      });
    }
  }

  #writePending(): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      const { clock, log, write } = this.#options;
      const started = clock.monotonic();
      for (const part of [...this.#pendingSections]) {
        this.#pendingSections.delete(part);
        try {
          await write(part);
          if (this.#lastError !== undefined) log.info({ state: part }, 'the state is written again');
          this.#lastError = undefined;
        } catch (error) {
          if (this.#lastError === undefined) log.error({ err: error, state: part }, 'the state cannot be written');
          this.#lastError = error;
          this.#intervalMs = WRITE_RETRY_INTERVAL_MS;
          this.writeSoon(part);
          return;
        }
      }
      this.#intervalMs = Math.max(WRITE_INTERVAL_MS, MIN_INTERVAL_PER_WRITE_TIME * (clock.monotonic() - started));
    });
    return this.#writing;
  }
}
