import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import type { KnownCutoffs, PlacedTable } from '@weir/store';
import type { StateCopy } from './state-copy.ts';

/** Writing may take this part of the time: a large table is written less often. */
const SHARE = 20;

export interface StateKeeperOptions {
  readonly copy: StateCopy;
  readonly clock: Clock;
  readonly log: Logger;
  readonly table: () => PlacedTable | undefined;
  readonly cutoffs: () => KnownCutoffs | undefined;
}

/** Keeps the copies on the disk as new as is cheap. A disk that fails is told once, and tried again. */
export class StateKeeper {
  readonly #options: StateKeeperOptions;
  #writtenPosition: unknown;
  #writtenCutoffs: unknown;
  #nextAt = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #hasFailed = false;

  constructor(options: StateKeeperOptions) {
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
    const { copy, clock, log, table, cutoffs } = this.#options;
    const startedAt = clock.monotonic();
    try {
      const placed = table();
      if (placed !== undefined && placed.position !== this.#writtenPosition) {
        await copy.writeTable(placed);
        this.#writtenPosition = placed.position;
      }
      const known = cutoffs();
      if (known !== undefined && known !== this.#writtenCutoffs) {
        await copy.writeCutoffs(known);
        this.#writtenCutoffs = known;
      }
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) log.error({ reason: errorMessage(error) }, 'the copy of the table cannot be written');
      this.#hasFailed = true;
    }
    this.#nextAt = clock.monotonic() + (clock.monotonic() - startedAt) * SHARE;
  }
}
