import { type Cutoff, isInForce } from '@weir/model';
import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import type { CutoffStore } from '@weir/store';
import { LeadLost } from '../leader/only-in-the-lead.ts';
import { forEachOf } from '../status/for-each-of.ts';
import type { SuspensionWriter } from '../suspension/suspension-writer.ts';
import type { Source } from '../watch/source.ts';
import { type Adoption, planAdoption } from './adoption.ts';

export interface ErrandsOptions {
  readonly source: Pick<Source, 'isDeleted'>;
  /** Default: Suspensions are not written. */
  readonly writer: SuspensionWriter | undefined;
  /** Read only. */
  readonly store: Pick<CutoffStore, 'read'>;
  readonly clock: Clock;
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

/** Asks the API server about Suspensions, beside the table: one that hangs must not keep the table waiting. The store is not written. */
export class SuspensionErrands {
  readonly #options: ErrandsOptions;
  #errands: Errands = { missing: [], over: [] };
  /** By uid. */
  readonly #gone = new Set<string>();
  /** By uid: made in the store, while no Suspension could be. */
  #requests: readonly Cutoff[] = [];
  readonly #made = new Map<string, Cutoff>();
  readonly #failing = new Set<string>();

  constructor(options: ErrandsOptions) {
    this.#options = options;
  }

  isGone(uid: string): boolean {
    return this.#gone.has(uid);
  }

  /** What has become a Suspension: the cut-off of that, to be put in place of the request's. */
  madeFrom(request: Cutoff): Cutoff | undefined {
    return this.#made.get(request.uid);
  }

  /** Cut-offs that were made in the store. A new one is news for whoever calls `run`. */
  request(requests: readonly Cutoff[]): 'new' | 'known' {
    const before = new Set(this.#requests.map(({ uid }) => uid));
    this.#requests = requests;
    for (const uid of this.#made.keys()) if (!requests.some((each) => each.uid === uid)) this.#made.delete(uid);
    return requests.every(({ uid }) => before.has(uid)) ? 'known' : 'new';
  }

  /** Another leads, and may do the same: what was found out is not known to hold. */
  forget(): void {
    this.take({ missing: [], over: [] });
    this.request([]);
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
    const requests = this.#requests.filter(({ uid }) => !this.#made.has(uid));
    // First, for somebody waits to be served again; a request is in force meanwhile.
    await forEachOf(missing, { at: AT_ONCE, signal }, async (cutoff) => {
      if (!(await source.isDeleted(cutoff, signal))) return;
      this.#gone.add(cutoff.uid);
      this.#options.onNews();
    });
    const failures: unknown[] = [];
    const each = (cutoffs: readonly Cutoff[], what: string, act: (cutoff: Cutoff) => Promise<void>): Promise<void> =>
      forEachOf(cutoffs, { at: AT_ONCE, signal }, async (cutoff) => {
        const failure = await this.#attempt(cutoff, what, () => act(cutoff));
        if (failure !== undefined) failures.push(failure.error);
      });
    if (writer !== undefined) {
      const make = (request: Cutoff): Promise<void> => this.#make(writer, request, signal);
      await each(requests, 'a cut-off that was made in the store has not become a Suspension; it stays in force', make);
      const remove = (cutoff: Cutoff): Promise<void> => writer.remove(cutoff, signal);
      await each(over, 'a Suspension whose time is over could not be deleted', remove);
    }
    if (failures.length > 0) throw failures[0];
  }

  async #make(writer: SuspensionWriter, { uid }: Cutoff, signal: AbortSignal): Promise<void> {
    const { store, clock, onNews } = this.#options;
    // As it is now: whoever lifted it meanwhile must not find it come back.
    const request = (await store.read()).cutoffs.find((cutoff) => cutoff.uid === uid);
    if (request === undefined || !isInForce(request, clock.now())) return;
    const adoption: Adoption = planAdoption(request, await writer.make(request, signal), clock.now());
    if (adoption.kind === 'refuse') throw new Error(adoption.why);
    this.#made.set(uid, adoption.cutoff);
    onNews();
  }

  /** Told once until it works: it is tried for as long as it takes. */
  async #attempt(cutoff: Cutoff, what: string, act: () => Promise<void>): Promise<{ error: unknown } | undefined> {
    try {
      await act();
      this.#failing.delete(cutoff.uid);
      return undefined;
    } catch (error) {
      if (error instanceof LeadLost) throw error;
      const level = this.#failing.has(cutoff.uid) ? 'debug' : 'warn';
      this.#failing.add(cutoff.uid);
      this.#options.log[level]({ suspension: cutoff.name, reason: errorMessage(error) }, what);
      return { error };
    }
  }
}
