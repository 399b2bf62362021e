import type { Cutoff } from '@weir/model';
import { errorMessage, type Logger } from '@weir/runtime';
import { forEachOf } from '../status/for-each-of.ts';
import type { SuspensionWriter } from '../suspension/suspension-writer.ts';
import type { Source } from '../watch/source.ts';

export interface ErrandsOptions {
  readonly source: Pick<Source, 'isDeleted'>;
  /** Default: Suspensions are not written. */
  readonly writer: SuspensionWriter | undefined;
  readonly log: Logger;
  /** Something was found out that changes what is in force. */
  readonly onNews: () => void;
}

/** What the store cannot be brought to without asking. */
export interface Errands {
  /** No longer in the source; to be lifted once they are known to be deleted. */
  readonly missing: readonly Cutoff[];
  /** Their time is over; the Suspensions are to be deleted. */
  readonly over: readonly Cutoff[];
}

const AT_ONCE = 8;

/** Asks the API server about Suspensions, beside the table: one that hangs must not keep the table waiting. The store is left alone. */
export class SuspensionErrands {
  readonly #options: ErrandsOptions;
  #errands: Errands = { missing: [], over: [] };
  /** By uid. */
  readonly #gone = new Set<string>();
  readonly #failing = new Set<string>();

  constructor(options: ErrandsOptions) {
    this.#options = options;
  }

  isGone(uid: string): boolean {
    return this.#gone.has(uid);
  }

  /** In place of those before. What was found out is acted upon by now. */
  take(errands: Errands): void {
    this.#errands = errands;
    this.#gone.clear();
  }

  /** Rejects when something could not be done, which was told by then; then come again. */
  async run(signal: AbortSignal): Promise<void> {
    const { source, writer } = this.#options;
    const { missing, over } = this.#errands;
    const failures: unknown[] = [];
    if (writer !== undefined) {
      await forEachOf(over, { at: AT_ONCE, signal }, async (cutoff) => {
        const failure = await this.#attempt(cutoff, 'a Suspension whose time is over could not be deleted', () =>
          writer.remove(cutoff, signal),
        );
        if (failure !== undefined && !signal.aborted) failures.push(failure.error);
      });
    }
    await forEachOf(missing, { at: AT_ONCE, signal }, async (cutoff) => {
      if (!(await source.isDeleted(cutoff, signal))) return;
      this.#gone.add(cutoff.uid);
      this.#options.onNews();
    });
    if (failures.length > 0) throw failures[0];
  }

  /** Told once until it works: it is tried for as long as it takes. */
  async #attempt(cutoff: Cutoff, what: string, act: () => Promise<void>): Promise<{ error: unknown } | undefined> {
    try {
      await act();
      this.#failing.delete(cutoff.uid);
      return undefined;
    } catch (error) {
      const level = this.#failing.has(cutoff.uid) ? 'debug' : 'warn';
      this.#failing.add(cutoff.uid);
      this.#options.log[level]({ suspension: cutoff.name, reason: errorMessage(error) }, what);
      return { error };
    }
  }
}
