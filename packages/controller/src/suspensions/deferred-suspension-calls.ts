import { isDeepStrictEqual } from 'node:util';
import { authorOf, isInForce, type Suspension, type SuspensionObject } from '@weir/model';
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
  /** Suspensions that the source does not have any more. A suspension is lifted once its object is known to be deleted. */
  readonly missing: readonly Suspension[];
  /** Suspensions whose `until` has passed, so that their objects are to be deleted. */
  readonly expired: readonly Suspension[];
}

const MAX_CONCURRENT_CALLS = 8;

/**
 * Makes the calls to the API server about Suspensions. The calls run in a separate loop, because a call that hangs must not delay the
 * table.
 */
export class DeferredSuspensionCalls {
  readonly #options: DeferredSuspensionCallsOptions;
  #toResolve: SuspensionsToResolve = { missing: [], expired: [] };
  readonly #deletedUids = new Set<string>();
  /** Suspensions that were made in the store, because their objects could not be written at that time. */
  #requests: readonly Suspension[] = [];
  /** For each request, the suspension of the object that replaces the request. By UID of the request. */
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

  /** Sets the suspensions that were made in the store. Returns `new` if any of them is new; then `run` is due. */
  setRequests(requests: readonly Suspension[]): 'new' | 'known' {
    const before = new Set(this.#requests.map(({ uid }) => uid));
    this.#requests = requests;
    for (const uid of this.#adoptedByRequest.keys())
      if (!requests.some((each) => each.uid === uid)) this.#adoptedByRequest.delete(uid);
    return requests.every(({ uid }) => before.has(uid)) ? 'known' : 'new';
  }

  /** Call this when leadership is lost: another controller then makes these calls, and the results of this controller may be outdated. */
  reset(): void {
    this.setToResolve({ missing: [], expired: [] });
    this.setRequests([]);
  }

  /** Replaces the suspensions to resolve. Forgets which suspensions were deleted, because the caller has used these results. */
  setToResolve(suspensions: SuspensionsToResolve): void {
    this.#toResolve = suspensions;
    this.#deletedUids.clear();
  }

  /** Makes the calls that are due. Logs each failed call and rejects if any call failed; then call `run` again. */
  async run(signal: AbortSignal): Promise<void> {
    const { source, writer } = this.#options;
    const { missing, expired } = this.#toResolve;
    const requests = this.#requests.filter(({ uid }) => !this.#adoptedByRequest.has(uid));
    // Looks for deleted Suspensions first, because their targets wait to be served again. The other calls are less urgent: a request
    // is already in force.
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
    // Reads the store again, because a suspension that was lifted since the last read must not return.
    const request = (await store.read()).suspensions.find((suspension) => suspension.uid === uid);
    if (request === undefined || !isInForce(request, clock.now())) return;
    const adoption: AdoptionPlan = planAdoption(request, await writer.getOrCreate(request, signal), clock.now());
    if (adoption.kind === 'refuse') throw new Error(adoption.why);
    this.#adoptedByRequest.set(uid, adoption.suspension);
    onResult();
  }

  /** Makes one call and returns its error. Warns only of the first failure, because the call is retried until it succeeds. */
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

/**
 * Decides whether the Suspension `found` may replace `request`, a suspension that was made in the store. `now` is in milliseconds
 * since the epoch.
 */
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
    ...authorOf(found),
  };
  if (!isDeepStrictEqual({ ...target }, { ...request.target })) {
    return {
      kind: 'refuse',
      why: `Suspension "${name}" exists and has another target than the cut-off; delete or rename this Suspension`,
    };
  }
  if (!isInForce(suspension, now)) {
    return { kind: 'refuse', why: `Suspension "${name}" has expired and is not deleted yet` };
  }
  if (!isNewer(found, request) && endOf(until) < endOf(request.until)) {
    return {
      kind: 'refuse',
      why: `an older Suspension "${name}" ends before the cut-off; delete or extend this Suspension`,
    };
  }
  return { kind: 'adopt', suspension };
}

/**
 * Whether the Suspension was created after the request, so that its author could know the request. Allows for one second, because the
 * API server's times are in whole seconds.
 */
function isNewer(found: SuspensionObject, request: Suspension): boolean {
  return found.createdAt !== null && request.createdAt !== null && found.createdAt + 1_000 > request.createdAt;
}

function endOf(until: number | null): number {
  return until ?? Number.POSITIVE_INFINITY;
}

/** Writes Suspension objects. */
export interface SuspensionObjectWriter {
  /** Creates the Suspension. If a Suspension of the same name exists, returns that Suspension, even if its spec differs. */
  getOrCreate(suspension: Suspension, signal: AbortSignal): Promise<SuspensionObject>;
  /**
   * Deletes the Suspension with this UID, but not a newer Suspension of the same name. Also resolves if the Suspension does not exist
   * any more.
   */
  remove(suspension: Suspension, signal: AbortSignal): Promise<void>;
}
