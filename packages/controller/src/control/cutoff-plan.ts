import { isInForce, type Suspension, type SuspensionOrigin } from '@weir/model';
import type { SuspensionState } from '@weir/store';

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
