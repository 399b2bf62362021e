import { isDeepStrictEqual } from 'node:util';
import { isInForce, type Suspension, type SuspensionObject } from '@weir/model';
import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import type { SuspensionStore } from '@weir/store';
import { forEachConcurrently } from '../kubernetes/concurrent-calls.ts';
import { LeadershipLost } from '../leader/leadership.ts';
import type { Source } from '../watch/source.ts';

export interface DeferredSuspensionCallsOptions {
  readonly source: Pick<Source, 'isDeleted'>;
  /** Default: Suspensions are not written. */
  readonly writer: SuspensionObjectWriter | undefined;
  /** Read only. */
  readonly store: Pick<SuspensionStore, 'read'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Something was found out that changes what is in force. */
  readonly onResult: () => void;
}

/** What the store cannot be brought to without asking. */
export interface SuspensionsToResolve {
  /** No longer in the source; to be lifted once they are known to be deleted. */
  readonly missing: readonly Suspension[];
  /** Their time is over; the Suspensions are to be deleted. */
  readonly expired: readonly Suspension[];
}

const MAX_CONCURRENT_CALLS = 8;

/** Asks the API server about Suspensions, beside the table: one that hangs must not keep the table waiting. The store is not written. */
export class DeferredSuspensionCalls {
  readonly #options: DeferredSuspensionCallsOptions;
  #toResolve: SuspensionsToResolve = { missing: [], expired: [] };
  /** By uid. */
  readonly #deletedUids = new Set<string>();
  /** By uid: made in the store, while no Suspension could be. */
  #requests: readonly Suspension[] = [];
  readonly #adoptedByRequest = new Map<string, Suspension>();
  readonly #failingUids = new Set<string>();

  constructor(options: DeferredSuspensionCallsOptions) {
    this.#options = options;
  }

  isDeleted(uid: string): boolean {
    return this.#deletedUids.has(uid);
  }

  /** What has become a Suspension: the cut-off of that, to be put in place of the request's. */
  adoptedFrom(request: Suspension): Suspension | undefined {
    return this.#adoptedByRequest.get(request.uid);
  }

  /** Cut-offs that were made in the store. A new one is news for whoever calls `run`. */
  setRequests(requests: readonly Suspension[]): 'new' | 'known' {
    const before = new Set(this.#requests.map(({ uid }) => uid));
    this.#requests = requests;
    for (const uid of this.#adoptedByRequest.keys())
      if (!requests.some((each) => each.uid === uid)) this.#adoptedByRequest.delete(uid);
    return requests.every(({ uid }) => before.has(uid)) ? 'known' : 'new';
  }

  /** Another leads, and may do the same: what was found out is not known to hold. */
  reset(): void {
    this.setToResolve({ missing: [], expired: [] });
    this.setRequests([]);
  }

  /** In place of those before. What was found out is acted upon by now. */
  setToResolve(errands: SuspensionsToResolve): void {
    this.#toResolve = errands;
    this.#deletedUids.clear();
  }

  /** Rejects when something could not be done, which was told by then; then come again. */
  async run(signal: AbortSignal): Promise<void> {
    const { source, writer } = this.#options;
    const { missing, expired } = this.#toResolve;
    const requests = this.#requests.filter(({ uid }) => !this.#adoptedByRequest.has(uid));
    // First, for somebody waits to be served again; a request is in force meanwhile.
    await forEachConcurrently(missing, { concurrency: MAX_CONCURRENT_CALLS, signal }, async (cutoff) => {
      if (!(await source.isDeleted(cutoff, signal))) return;
      this.#deletedUids.add(cutoff.uid);
      this.#options.onResult();
    });
    const failures: unknown[] = [];
    const each = (
      cutoffs: readonly Suspension[],
      what: string,
      act: (cutoff: Suspension) => Promise<void>,
    ): Promise<void> =>
      forEachConcurrently(cutoffs, { concurrency: MAX_CONCURRENT_CALLS, signal }, async (cutoff) => {
        const failure = await this.#attempt(cutoff, what, () => act(cutoff));
        if (failure !== undefined) failures.push(failure.error);
      });
    if (writer !== undefined) {
      const make = (request: Suspension): Promise<void> => this.#adopt(writer, request, signal);
      await each(requests, 'a cut-off that was made in the store has not become a Suspension; it stays in force', make);
      const remove = (cutoff: Suspension): Promise<void> => writer.remove(cutoff, signal);
      await each(expired, 'a Suspension whose time is over could not be deleted', remove);
    }
    if (failures.length > 0) throw failures[0];
  }

  async #adopt(writer: SuspensionObjectWriter, { uid }: Suspension, signal: AbortSignal): Promise<void> {
    const { store, clock, onResult } = this.#options;
    // As it is now: whoever lifted it meanwhile must not find it come back.
    const request = (await store.read()).suspensions.find((cutoff) => cutoff.uid === uid);
    if (request === undefined || !isInForce(request, clock.now())) return;
    const adoption: AdoptionPlan = planAdoption(request, await writer.getOrCreate(request, signal), clock.now());
    if (adoption.kind === 'refuse') throw new Error(adoption.why);
    this.#adoptedByRequest.set(uid, adoption.cutoff);
    onResult();
  }

  /** Told once until it works: it is tried for as long as it takes. */
  async #attempt(cutoff: Suspension, what: string, act: () => Promise<void>): Promise<{ error: unknown } | undefined> {
    try {
      await act();
      this.#failingUids.delete(cutoff.uid);
      return undefined;
    } catch (error) {
      if (error instanceof LeadershipLost) throw error;
      const level = this.#failingUids.has(cutoff.uid) ? 'debug' : 'warn';
      this.#failingUids.add(cutoff.uid);
      this.#options.log[level]({ suspension: cutoff.name, reason: errorMessage(error) }, what);
      return { error };
    }
  }
}

export type AdoptionPlan =
  | { readonly kind: 'adopt'; readonly cutoff: Suspension }
  /** The request stays in the store, and in force. */
  | { readonly kind: 'refuse'; readonly why: string };

/** Whether a Suspension may stand for a cut-off that was made in the store. `now`: milliseconds since the epoch. */
export function planAdoption(request: Suspension, found: SuspensionObject, now: number): AdoptionPlan {
  const { uid, name, target, message, until, rule, createdAt } = found;
  const cutoff: Suspension = {
    uid,
    name,
    target,
    message,
    until,
    reason: rule === null ? 'SuspendedByOperator' : 'SuspendedByRule',
    origin: { kind: 'kubernetes' },
    createdAt,
  };
  if (!isDeepStrictEqual({ ...target }, { ...request.target })) {
    return { kind: 'refuse', why: `Suspension "${name}" is for another target; delete or rename it` };
  }
  if (!isInForce(cutoff, now)) return { kind: 'refuse', why: `Suspension "${name}" is over, but not deleted yet` };
  if (!isNewer(found, request) && endOf(until) < endOf(request.until)) {
    return { kind: 'refuse', why: `Suspension "${name}" was there before, and ends sooner` };
  }
  return { kind: 'adopt', cutoff };
}

/** Then whoever made it knew better. The API server counts in seconds. */
function isNewer(found: SuspensionObject, request: Suspension): boolean {
  return found.createdAt !== null && request.createdAt !== null && found.createdAt + 1_000 > request.createdAt;
}

function endOf(until: number | null): number {
  return until ?? Number.POSITIVE_INFINITY;
}

/** Where Suspensions are objects that the controller may write. */
export interface SuspensionObjectWriter {
  /** The Suspension under the cut-off's name: created, or the one that is there already, whatever it says. */
  getOrCreate(cutoff: Suspension, signal: AbortSignal): Promise<SuspensionObject>;
  /** Deletes the one that was in force, not another that was made under its name. Resolves also when it is gone already. */
  remove(cutoff: Suspension, signal: AbortSignal): Promise<void>;
}
