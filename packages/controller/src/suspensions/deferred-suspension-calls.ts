import { isDeepStrictEqual } from 'node:util';
import { isInForce, type Suspension, type SuspensionObject } from '@weir/model';
import { type Clock, errorMessage, type Logger } from '@weir/runtime';
import type { SuspensionStore } from '@weir/store';
import { forEachConcurrently } from '../kubernetes/concurrent-calls.ts';
import { LeadershipLost } from '../leader/leadership.ts';
import type { Source } from '../watch/source.ts';

export interface DeferredSuspensionCallsOptions {
  readonly source: Pick<Source, 'isDeleted'>;
  /** Undefined if Suspension objects cannot be written. */
  readonly writer: SuspensionObjectWriter | undefined;
  readonly store: Pick<SuspensionStore, 'read'>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when a result changes which suspensions are in force. */
  readonly onResult: () => void;
}

/** The suspensions that need a call to the API server. */
export interface SuspensionsToResolve {
  /** Suspensions that the source does not have any more. They are lifted once they are known to be deleted. */
  readonly missing: readonly Suspension[];
  /** Suspensions whose `until` has passed. They are to be deleted. */
  readonly expired: readonly Suspension[];
}

const MAX_CONCURRENT_CALLS = 8;

/**
 * Makes the calls to the API server about Suspensions. They run in a separate loop, because a call that hangs must not delay the
 * table.
 */
export class DeferredSuspensionCalls {
  readonly #options: DeferredSuspensionCallsOptions;
  #toResolve: SuspensionsToResolve = { missing: [], expired: [] };
  readonly #deletedUids = new Set<string>();
  /** Suspensions that were made in the store because their objects could not be written then. */
  #requests: readonly Suspension[] = [];
  /** The adopted suspensions by UID of the request. */
  readonly #adoptedByRequest = new Map<string, Suspension>();
  readonly #failingUids = new Set<string>();

  constructor(options: DeferredSuspensionCallsOptions) {
    this.#options = options;
  }

  isDeleted(uid: string): boolean {
    return this.#deletedUids.has(uid);
  }

  /** Returns the suspension of the object that replaces the request; undefined if there is no such object yet. */
  adoptedFrom(request: Suspension): Suspension | undefined {
    return this.#adoptedByRequest.get(request.uid);
  }

  /** Sets the suspensions that were made in the store. `new`: one of them is new, so `run` is due. */
  setRequests(requests: readonly Suspension[]): 'new' | 'known' {
    const before = new Set(this.#requests.map(({ uid }) => uid));
    this.#requests = requests;
    for (const uid of this.#adoptedByRequest.keys())
      if (!requests.some((each) => each.uid === uid)) this.#adoptedByRequest.delete(uid);
    return requests.every(({ uid }) => before.has(uid)) ? 'known' : 'new';
  }

  /** Call this when leadership is lost: another controller makes these calls, and the results may be outdated. */
  reset(): void {
    this.setToResolve({ missing: [], expired: [] });
    this.setRequests([]);
  }

  /** Replaces the suspensions to resolve, and forgets the results, which the caller has used. */
  setToResolve(suspensions: SuspensionsToResolve): void {
    this.#toResolve = suspensions;
    this.#deletedUids.clear();
  }

  /** Makes the calls that are due. Rejects if a call failed and was logged; then call again. */
  async run(signal: AbortSignal): Promise<void> {
    const { source, writer } = this.#options;
    const { missing, expired } = this.#toResolve;
    const requests = this.#requests.filter(({ uid }) => !this.#adoptedByRequest.has(uid));
    // Deletions first, since their targets wait to be served again; a request is in force meanwhile.
    await forEachConcurrently(missing, { concurrency: MAX_CONCURRENT_CALLS, signal }, async (suspension) => {
      if (!(await source.isDeleted(suspension, signal))) return;
      this.#deletedUids.add(suspension.uid);
      this.#options.onResult();
    });
    const failures: unknown[] = [];
    const attemptEach = (
      suspensions: readonly Suspension[],
      failureMessage: string,
      act: (suspension: Suspension) => Promise<void>,
    ): Promise<void> =>
      forEachConcurrently(suspensions, { concurrency: MAX_CONCURRENT_CALLS, signal }, async (suspension) => {
        const failure = await this.#attempt(suspension, failureMessage, () => act(suspension));
        if (failure !== undefined) failures.push(failure.error);
      });
    if (writer !== undefined) {
      const adopt = (request: Suspension): Promise<void> => this.#adopt(writer, request, signal);
      await attemptEach(
        requests,
        'failed to create a Suspension for a cut-off made in the store; the cut-off stays in force, retrying',
        adopt,
      );
      const remove = (suspension: Suspension): Promise<void> => writer.remove(suspension, signal);
      await attemptEach(expired, 'failed to delete an expired Suspension; retrying', remove);
    }
    if (failures.length > 0) throw failures[0];
  }

  async #adopt(writer: SuspensionObjectWriter, { uid }: Suspension, signal: AbortSignal): Promise<void> {
    const { store, clock, onResult } = this.#options;
    // Read again: a suspension that was lifted meanwhile must not return.
    const request = (await store.read()).suspensions.find((suspension) => suspension.uid === uid);
    if (request === undefined || !isInForce(request, clock.now())) return;
    const adoption: AdoptionPlan = planAdoption(request, await writer.getOrCreate(request, signal), clock.now());
    if (adoption.kind === 'refuse') throw new Error(adoption.why);
    this.#adoptedByRequest.set(uid, adoption.suspension);
    onResult();
  }

  /** Warns of the first failure only, since the call is retried until it succeeds. */
  async #attempt(
    { uid, name }: Suspension,
    failureMessage: string,
    act: () => Promise<void>,
  ): Promise<{ error: unknown } | undefined> {
    try {
      await act();
      this.#failingUids.delete(uid);
      return undefined;
    } catch (error) {
      if (error instanceof LeadershipLost) throw error;
      const level = this.#failingUids.has(uid) ? 'debug' : 'warn';
      this.#failingUids.add(uid);
      this.#options.log[level]({ suspension: name, reason: errorMessage(error) }, failureMessage);
      return { error };
    }
  }
}

export type AdoptionPlan =
  | { readonly kind: 'adopt'; readonly suspension: Suspension }
  /** The request stays in the store and in force. */
  | { readonly kind: 'refuse'; readonly why: string };

/** Decides whether a Suspension may replace a suspension that was made in the store. `now`: milliseconds since the epoch. */
export function planAdoption(request: Suspension, found: SuspensionObject, now: number): AdoptionPlan {
  const { uid, name, target, message, until, rule, createdAt } = found;
  const suspension: Suspension = {
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
    return { kind: 'refuse', why: `Suspension "${name}" has another target; delete or rename it` };
  }
  if (!isInForce(suspension, now)) {
    return { kind: 'refuse', why: `Suspension "${name}" has expired and is not deleted yet` };
  }
  if (!isNewer(found, request) && endOf(until) < endOf(request.until)) {
    return { kind: 'refuse', why: `an older Suspension "${name}" ends before the cut-off; delete or extend it` };
  }
  return { kind: 'adopt', suspension };
}

/**
 * Whether the Suspension was created after the request, so that its author knew the request. Allows for one second, the resolution
 * of the API server's times.
 */
function isNewer(found: SuspensionObject, request: Suspension): boolean {
  return found.createdAt !== null && request.createdAt !== null && found.createdAt + 1_000 > request.createdAt;
}

function endOf(until: number | null): number {
  return until ?? Number.POSITIVE_INFINITY;
}

/** Writes Suspension objects. */
export interface SuspensionObjectWriter {
  /** Creates the Suspension, or returns the existing Suspension of the same name, whatever its spec says. */
  getOrCreate(suspension: Suspension, signal: AbortSignal): Promise<SuspensionObject>;
  /** Deletes the Suspension with this UID, but not a newer Suspension of the same name. Also resolves if it is gone. */
  remove(suspension: Suspension, signal: AbortSignal): Promise<void>;
}
