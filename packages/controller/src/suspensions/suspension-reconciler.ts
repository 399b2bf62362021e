import { isInForce, type Snapshot, type Suspension, type SuspensionOrigin, suspensionsFor } from '@weir/model';
import type { Clock, Logger, Timer } from '@weir/runtime';
import type { SuspensionState, SuspensionStore } from '@weir/store';
import { createLeaderLoop, type LoopContext, type ReconcileLoop } from '../controller/reconcile-loop.ts';
import type { Source } from '../watch/source.ts';
import type { DeferredSuspensionCalls } from './deferred-suspension-calls.ts';

const SUSPENSION_LOOP = { gapMs: 5, resyncMs: 10_000, retryMs: [1_000, 30_000] } as const;

/** Makes the deferred calls to the API server. The table loop runs `SuspensionReconciler`, since the table must not come before. */
export function createSuspensionLoop(
  context: LoopContext,
  {
    suspensions,
    deferredCalls,
  }: { readonly suspensions: SuspensionReconciler; readonly deferredCalls: DeferredSuspensionCalls },
): ReconcileLoop {
  const loop = createLeaderLoop(context, SUSPENSION_LOOP, {
    run: (signal) => context.metrics.measure('suspensions', () => deferredCalls.run(signal)),
    // `DeferredSuspensionCalls` has logged each failed call.
    onError: () => undefined,
  });
  return { loop, onLeadershipLost: () => deferredCalls.reset(), close: () => suspensions.close() };
}

export interface SuspensionReconcilerOptions {
  readonly source: Source;
  readonly store: SuspensionStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** A cut-off has come to its end: `keep` is due. */
  readonly onExpiry: () => void;
  /** Somebody has made one in the store itself. */
  readonly onRequest: () => void;
  /** Finds out beside us what takes asking; here only its answers are acted upon. */
  readonly deferredCalls: DeferredSuspensionCalls;
}

/** Brings the Suspensions of the source into the store, and out of it once they are known to be gone. */
export class SuspensionReconciler {
  readonly #options: SuspensionReconcilerOptions;
  #madeInStore: readonly Suspension[] = [];
  #stored: readonly Suspension[] = [];
  #sequence = 0;
  #timer: Timer | undefined;

  constructor(options: SuspensionReconcilerOptions) {
    this.#options = options;
  }

  /** Those in the store, as of the last look. */
  get stored(): readonly Suspension[] {
    return this.#stored;
  }

  /** Rejects when the store is away; then come again. */
  async reconcile(snapshot: Snapshot): Promise<void> {
    const { source, store, clock, log, deferredCalls } = this.#options;
    const wanted = suspensionsFor(snapshot, (uid) => source.originOf({ uid }));
    const state = await store.read();
    const plan = planSuspensions({
      state,
      wanted,
      madeInStore: this.#madeInStore,
      origin: source.kind === 'directory' ? 'file' : 'kubernetes',
      now: clock.now(),
    });
    for (const cutoff of plan.put) {
      await store.put(cutoff);
      log.info({ suspension: cutoff.name, target: cutoff.target }, 'cut-off put in force');
    }
    const adopted = await this.#adopt([...state.suspensions, ...plan.put], wanted);
    const deleted = plan.missing.filter(({ uid }) => deferredCalls.isDeleted(uid));
    for (const cutoff of plan.expired) await this.#lift(cutoff, 'its time is over');
    for (const cutoff of deleted) await this.#lift(cutoff, 'its Suspension was deleted');
    if (!state.complete) await store.markComplete();
    const written = plan.put.length + adopted + plan.expired.length + deleted.length;
    // The table waits for this: mostly there is nothing to do, and nothing to be read again.
    this.#recordState(state.complete && written === 0 ? state : await store.read());
    deferredCalls.setToResolve({
      missing: plan.missing.filter(({ uid }) => !deferredCalls.isDeleted(uid)),
      expired: wanted.filter((cutoff) => !isInForce(cutoff, clock.now())),
    });
  }

  /** Looks what the store holds now. False when it lost something, and `keep` is due. Rejects when it is away. */
  async isStoreIntact(): Promise<boolean> {
    const state = await this.#options.store.read();
    if (!state.complete || state.sequence < this.#sequence) return false;
    this.#recordState(state);
    return true;
  }

  close(): void {
    this.#timer?.cancel();
  }

  #recordState({ suspensions, sequence }: SuspensionState): void {
    const { clock, deferredCalls, onExpiry, onRequest } = this.#options;
    this.#stored = suspensions;
    this.#sequence = sequence;
    this.#madeInStore = suspensions.filter((cutoff) => cutoff.origin.kind === 'store');
    if (deferredCalls.setRequests(this.#madeInStore) === 'new') onRequest();
    this.#timer?.cancel();
    const end = nextExpiryOf(suspensions, clock.now());
    this.#timer = end === null ? undefined : clock.setTimeout(onExpiry, end - clock.now());
  }

  /** First the Suspension's, then away with the request's: so that it never lapses. Returns how many. */
  async #adopt(cutoffs: readonly Suspension[], wanted: readonly Suspension[]): Promise<number> {
    const { store, deferredCalls, log } = this.#options;
    let adopted = 0;
    for (const request of cutoffs.filter(({ origin }) => origin.kind === 'store')) {
      const made = deferredCalls.adoptedFrom(request);
      if (made === undefined) continue;
      adopted += 1;
      // What the source says of it may be newer, and is in the store by now.
      if (!wanted.some(({ uid }) => uid === made.uid)) await store.put(made);
      await store.remove(request.uid);
      log.info(
        { suspension: made.name, target: made.target },
        'a cut-off that was made in the store is a Suspension now',
      );
    }
    return adopted;
  }

  async #lift(cutoff: Suspension, why: string): Promise<void> {
    await this.#options.store.remove(cutoff.uid);
    this.#options.log.info({ suspension: cutoff.name, target: cutoff.target, why }, 'cut-off lifted');
  }
}

export interface SuspensionPlan {
  readonly put: readonly Suspension[];
  /** Over by `until`. */
  readonly expired: readonly Suspension[];
  /** No longer in the source: to be removed only once they are known to be deleted. */
  readonly missing: readonly Suspension[];
}

export interface SuspensionPlanInput {
  readonly state: SuspensionState;
  /** The Suspensions of the source. */
  readonly wanted: readonly Suspension[];
  /** Made in the store, as last seen while it was whole: after a wipe nobody else can put them back. */
  readonly madeInStore: readonly Suspension[];
  readonly origin: SuspensionOrigin['kind'];
  readonly now: number;
}

/**
 * What brings the cut-offs of the store to what the source says. Those that a person made in the store itself, and those of another
 * kind of source, are nobody's business here but when their time is over.
 */
export function planSuspensions({ state, wanted, madeInStore, origin, now }: SuspensionPlanInput): SuspensionPlan {
  const present = new Map(state.suspensions.map((cutoff) => [cutoff.uid, cutoff]));
  const inForce = wanted.filter((cutoff) => isInForce(cutoff, now));
  const put = inForce.filter((cutoff) => !isSame(cutoff, present.get(cutoff.uid)));
  if (!state.complete) {
    const isLost = ({ uid }: Suspension): boolean => !present.has(uid) && !state.removed.includes(uid);
    put.push(...madeInStore.filter((cutoff) => isLost(cutoff) && isInForce(cutoff, now)));
  }
  const wantedUids = new Set(inForce.map((cutoff) => cutoff.uid));
  const overUids = new Set(wanted.filter((cutoff) => !isInForce(cutoff, now)).map((cutoff) => cutoff.uid));
  const others = state.suspensions.filter((cutoff) => !wantedUids.has(cutoff.uid));
  // Its end may have been brought forward since it was put.
  const isOver = (cutoff: Suspension): boolean => !isInForce(cutoff, now) || overUids.has(cutoff.uid);
  return {
    put,
    expired: others.filter(isOver),
    missing: others.filter((cutoff) => cutoff.origin.kind === origin && !isOver(cutoff)),
  };
}

/** When the next one is over; null: none has an end. */
export function nextExpiryOf(cutoffs: readonly Suspension[], now: number): number | null {
  const ends = cutoffs.flatMap(({ until }) => (until !== null && until > now ? [until] : []));
  return ends.length === 0 ? null : Math.min(...ends);
}

function isSame(a: Suspension, b: Suspension | undefined): boolean {
  return b !== undefined && JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

function sorted(cutoff: Suspension): unknown {
  return Object.entries({
    ...cutoff,
    target: Object.entries(cutoff.target).sort(),
    origin: Object.entries(cutoff.origin).sort(),
  }).sort(([a], [b]) => (a < b ? -1 : 1));
}
