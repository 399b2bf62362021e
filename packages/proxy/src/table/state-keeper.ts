import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import type { KnownSuspensions, PositionedTable } from '@weir/store';
import type { StateFiles } from './state-copy.ts';

/** Writing may take this part of the time: a large table is written less often. */
const WRITE_TIME_DIVISOR = 20;

export interface StateSaverOptions {
  readonly files: StateFiles;
  readonly clock: Clock;
  readonly log: Logger;
  readonly table: () => PositionedTable | undefined;
  readonly suspensions: () => KnownSuspensions | undefined;
}

/** Keeps the copies on the disk as new as is cheap. A disk that fails is told once, and tried again. */
export class StateSaver {
  readonly #options: StateSaverOptions;
  #writtenPosition: unknown;
  #writtenSuspensions: unknown;
  #nextAt = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #hasFailed = false;

  constructor(options: StateSaverOptions) {
    this.#options = options;
  }

  /** Once a second. */
  tick(): void {
    if (this.#running !== undefined || this.#options.clock.monotonic() < this.#nextAt) return;
    this.#running = this.write().finally(() => {
      this.#running = undefined;
    });
  }

  async close(): Promise<void> {
    await this.#running;
    await this.write();
  }

  async write(): Promise<void> {
    const { files, clock, log, table, suspensions } = this.#options;
    const startedAt = clock.monotonic();
    try {
      const placed = table();
      if (placed !== undefined && placed.position !== this.#writtenPosition) {
        await files.writeTable(placed);
        this.#writtenPosition = placed.position;
      }
      const known = suspensions();
      if (known !== undefined && known !== this.#writtenSuspensions) {
        await files.writeSuspensions(known);
        this.#writtenSuspensions = known;
      }
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) log.error({ reason: errorMessage(error) }, 'the copy of the table cannot be written');
      this.#hasFailed = true;
    }
    this.#nextAt = clock.monotonic() + (clock.monotonic() - startedAt) * WRITE_TIME_DIVISOR;
  }
}
