import { isInForce, type Snapshot, type Suspension, type SuspensionOrigin, suspensionsFor } from '@weir/model';
import type { Clock, Logger, Timer } from '@weir/runtime';
import type { SuspensionRelease, SuspensionState, SuspensionStore } from '@weir/store';
import { createLeaderLoop, type LoopContext, type ReconcileLoop } from '../controller/reconcile-loop.ts';
import type { Source } from '../watch/source.ts';
import type { DeferredSuspensionCalls } from './deferred-suspension-calls.ts';

const SUSPENSION_LOOP = { gapMs: 5, resyncMs: 10_000, retryMs: [1_000, 30_000] } as const;

/**
 * Creates the loop that makes the deferred calls to the API server. `SuspensionReconciler.reconcile` runs in the table loop instead,
 * before each table is published.
 */
export function createSuspensionLoop(
  context: LoopContext,
  {
    suspensions,
    deferredCalls,
  }: { readonly suspensions: SuspensionReconciler; readonly deferredCalls: DeferredSuspensionCalls },
): ReconcileLoop {
  const loop = createLeaderLoop(context, SUSPENSION_LOOP, {
    run: (signal) => context.metrics.measure('suspensions', () => deferredCalls.run(signal)),
    // Nothing to do, because `DeferredSuspensionCalls` has logged each failed call.
    onError: () => undefined,
  });
  return {
    loop,
    onLeadershipLost: () => deferredCalls.reset(),
    // The table loop also runs after a reconnection, and declares the list complete again.
    onStoreReady: () => suspensions.onStoreReconnected(),
    close: () => suspensions.close(),
  };
}

export interface SuspensionReconcilerOptions {
  readonly source: Source;
  readonly store: SuspensionStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when a suspension has expired, so that `reconcile` is due. */
  readonly onExpiry: () => void;
  /** Called when the store contains a new suspension that has no Kubernetes object yet. The deferred calls must then run. */
  readonly onRequest: () => void;
  /** Makes the calls to the API server; `reconcile` only uses their results. */
  readonly deferredCalls: DeferredSuspensionCalls;
}

/**
 * The maximum number of removals that the store records. With more removals, the controller declares the list of suspensions complete
 * again, and the store forgets the removals. Each proxy reads all recorded removals at each change.
 */
const MAX_RECORDED_REMOVALS = 1_000;

/** Puts the Suspensions of the source into the store, and removes a suspension from the store once its object is known to be deleted. */
export class SuspensionReconciler {
  readonly #options: SuspensionReconcilerOptions;
  #madeInStore: readonly Suspension[] = [];
  #stored: readonly Suspension[] = [];
  #sequence = 0;
  /** The `completeSince` of this controller's last declaration; undefined while the list must be declared complete again. */
  #completeSince: number | null | undefined;
  #reportedSequence = 0;
  #timer: Timer | undefined;

  constructor(options: SuspensionReconcilerOptions) {
    this.#options = options;
  }

  /** The suspensions in the store, as last read. */
  get stored(): readonly Suspension[] {
    return this.#stored;
  }

  /** Writes the changes of suspensions to the store. Rejects if the store is unreachable; then call `reconcile` again. */
  async reconcile(snapshot: Snapshot): Promise<void> {
    const { source, store, clock, log, deferredCalls } = this.#options;
    const wanted = suspensionsFor(snapshot, (uid) => source.originOf({ uid }));
    const state = await store.read();
    const isComplete = this.#isIntact(state);
    const plan = planSuspensions({
      state,
      isComplete,
      wanted,
      madeInStore: this.#madeInStore,
      origin: source.kind === 'directory' ? 'file' : 'kubernetes',
      now: clock.now(),
    });
    for (const suspension of plan.put) {
      await store.put(suspension, adoptedBy(suspension, state.suspensions)?.uid);
      log.info({ suspension: suspension.name, target: suspension.target }, 'cut-off is in force');
    }
    const adopted = await this.#adopt([...state.suspensions, ...plan.put], wanted);
    const deleted = plan.missing.filter(({ uid }) => deferredCalls.isDeleted(uid));
    for (const suspension of plan.expired) await this.#lift(suspension, 'expired');
    for (const suspension of deleted) await this.#lift(suspension, 'deleted');
    const removals = state.changes.size - state.suspensions.length;
    const isDeclared = isComplete && removals <= MAX_RECORDED_REMOVALS;
    if (!isDeclared) await store.markComplete(this.#reportedSequence);
    const written = plan.put.length + adopted + plan.expired.length + deleted.length;
    // The table waits for this function, so the store is not read again if nothing was written.
    this.#recordState(isDeclared && written === 0 ? state : await store.read());
    deferredCalls.setToResolve({
      missing: plan.missing.filter(({ uid }) => !deferredCalls.isDeleted(uid)),
      expired: wanted.filter((suspension) => !isInForce(suspension, clock.now())),
    });
  }

  /**
   * Reads the store. Returns false if the store was wiped or fell back to an older copy; then call `reconcile`. Rejects if the store
   * is unreachable. `reportedSequence` is the highest sequence of suspensions that a running proxy applies.
   */
  async isStoreIntact(reportedSequence = 0): Promise<boolean> {
    this.#reportedSequence = reportedSequence;
    const state = await this.#options.store.read();
    if (!this.#isIntact(state)) return false;
    this.#recordState(state);
    return true;
  }

  /**
   * Whether the store still has the list that this controller declared complete. Otherwise a proxy may know suspensions that are not
   * listed, and lifts these suspensions only after the next declaration.
   */
  #isIntact({ completeSince, sequence }: SuspensionState): boolean {
    return completeSince === this.#completeSince && sequence >= Math.max(this.#sequence, this.#reportedSequence);
  }

  /** To be called when the store was unreachable, because a failover may have lost changes while other changes raised the sequence. */
  onStoreReconnected(): void {
    this.#completeSince = undefined;
  }

  close(): void {
    this.#timer?.cancel();
  }

  #recordState({ suspensions, sequence, completeSince }: SuspensionState): void {
    const { clock, deferredCalls, onExpiry, onRequest } = this.#options;
    this.#stored = suspensions;
    this.#sequence = sequence;
    this.#completeSince = completeSince;
    this.#madeInStore = suspensions.filter(({ origin }) => origin.kind === 'store');
    if (deferredCalls.setRequests(this.#madeInStore) === 'new') onRequest();
    this.#timer?.cancel();
    const end = nextExpiryOf(suspensions, clock.now());
    this.#timer = end === null ? undefined : clock.setTimeout(onExpiry, end - clock.now());
  }

  /**
   * Replaces each request that has been adopted. Puts the adopted suspension before it removes the request, so that the target stays
   * suspended. Returns the number of replaced requests.
   */
  async #adopt(suspensions: readonly Suspension[], wanted: readonly Suspension[]): Promise<number> {
    const { store, deferredCalls, log } = this.#options;
    let count = 0;
    for (const request of suspensions.filter(({ origin }) => origin.kind === 'store')) {
      const adopted = deferredCalls.adoptedFrom(request);
      if (adopted === undefined) continue;
      count += 1;
      // Does not put a Suspension object that the source has already read: `reconcile` has put that object into the store, and the object
      // may be newer than `adopted`.
      if (!wanted.some(({ uid }) => uid === adopted.uid)) await store.put(adopted, request.uid);
      await store.remove(request.uid);
      log.info(
        { suspension: adopted.name, target: adopted.target },
        'created a Suspension for a cut-off that existed only in the store',
      );
    }
    return count;
  }

  async #lift(suspension: Suspension, why: SuspensionRelease['why']): Promise<void> {
    await this.#options.store.remove(suspension.uid, { suspension, why });
    this.#options.log.info({ suspension: suspension.name, target: suspension.target, why }, 'cut-off lifted');
  }
}

export interface SuspensionPlan {
  readonly put: readonly Suspension[];
  /** Suspensions whose `until` has passed. */
  readonly expired: readonly Suspension[];
  /** Suspensions that the source does not have any more. They stay in force until their objects are known to be deleted. */
  readonly missing: readonly Suspension[];
}

export interface SuspensionPlanInput {
  readonly state: SuspensionState;
  /** False if the store may have lost suspensions: it is new, was wiped or was rolled back, or another leader wrote it. */
  readonly isComplete: boolean;
  /** The Suspensions of the source. */
  readonly wanted: readonly Suspension[];
  /** The suspensions made in the store itself, as last read. After a wipe of the store, only the controller can restore them. */
  readonly madeInStore: readonly Suspension[];
  /** The kind of origin that the Suspensions of the source have. */
  readonly origin: SuspensionOrigin['kind'];
  /** The current time in milliseconds since the epoch. */
  readonly now: number;
}

/**
 * Plans the writes after which the store contains the Suspensions of the source. Suspensions that a person made in the store itself,
 * or that come from another kind of source, are removed only when they expire.
 */
export function planSuspensions(input: SuspensionPlanInput): SuspensionPlan {
  const { state, isComplete, wanted, madeInStore, origin, now } = input;
  const present = new Map(state.suspensions.map((suspension) => [suspension.uid, suspension]));
  const inForce = wanted.filter((suspension) => isInForce(suspension, now));
  const put = inForce.filter((suspension) => !isSame(suspension, present.get(suspension.uid)));
  if (!isComplete) {
    const isLost = ({ uid }: Suspension): boolean => !present.has(uid) && !state.changes.has(uid);
    put.push(...madeInStore.filter((suspension) => isLost(suspension) && isInForce(suspension, now)));
  }
  const inForceUids = new Set(inForce.map(({ uid }) => uid));
  const expiredUids = new Set(wanted.filter((suspension) => !isInForce(suspension, now)).map(({ uid }) => uid));
  const others = state.suspensions.filter(({ uid }) => !inForceUids.has(uid));
  // In the source, `until` may have been changed to an earlier time since the suspension was put into the store.
  const isExpired = (suspension: Suspension): boolean => !isInForce(suspension, now) || expiredUids.has(suspension.uid);
  return {
    put,
    expired: others.filter(isExpired),
    missing: others.filter((suspension) => suspension.origin.kind === origin && !isExpired(suspension)),
  };
}

/** Returns when the next suspension expires, in milliseconds since the epoch; null if no suspension expires. */
export function nextExpiryOf(suspensions: readonly Suspension[], now: number): number | null {
  const ends = suspensions.flatMap(({ until }) => (until !== null && until > now ? [until] : []));
  return ends.length === 0 ? null : Math.min(...ends);
}

/** Returns the request in the store that the suspension of an object will replace; undefined if the suspension is new. */
function adoptedBy(
  { origin, name, message, until }: Suspension,
  stored: readonly Suspension[],
): Suspension | undefined {
  if (origin.kind !== 'kubernetes') return undefined;
  return stored.find(
    (request) =>
      request.origin.kind === 'store' &&
      request.name === name &&
      request.message === message &&
      request.until === until,
  );
}

function isSame(a: Suspension, b: Suspension | undefined): boolean {
  return b !== undefined && JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

function sorted(suspension: Suspension): unknown {
  return Object.entries({
    ...suspension,
    target: Object.entries(suspension.target).sort(),
    origin: Object.entries(suspension.origin).sort(),
  }).sort(([a], [b]) => (a < b ? -1 : 1));
}
