import { type Cutoff, type CutoffOrigin, isInForce } from '@weir/model';
import type { CutoffState } from '@weir/store';

export interface CutoffPlan {
  readonly put: readonly Cutoff[];
  /** Over by `until`. */
  readonly expired: readonly Cutoff[];
  /** No longer in the source: to be removed only once they are known to be deleted. */
  readonly missing: readonly Cutoff[];
}

export interface CutoffSituation {
  readonly state: CutoffState;
  /** The Suspensions of the source. */
  readonly wanted: readonly Cutoff[];
  /** Made in the store, as last seen while it was whole: after a wipe nobody else can put them back. */
  readonly remembered: readonly Cutoff[];
  readonly origin: CutoffOrigin['kind'];
  readonly now: number;
}

/**
 * What brings the cut-offs of the store to what the source says. Those that a person made in the store itself, and those of another
 * kind of source, are nobody's business here but when their time is over.
 */
export function planCutoffs({ state, wanted, remembered, origin, now }: CutoffSituation): CutoffPlan {
  const present = new Map(state.cutoffs.map((cutoff) => [cutoff.uid, cutoff]));
  const inForce = wanted.filter((cutoff) => isInForce(cutoff, now));
  const put = inForce.filter((cutoff) => !isSame(cutoff, present.get(cutoff.uid)));
  if (!state.complete) {
    const isLost = ({ uid }: Cutoff): boolean => !present.has(uid) && !state.removed.includes(uid);
    put.push(...remembered.filter((cutoff) => isLost(cutoff) && isInForce(cutoff, now)));
  }
  const wantedUids = new Set(inForce.map((cutoff) => cutoff.uid));
  const overUids = new Set(wanted.filter((cutoff) => !isInForce(cutoff, now)).map((cutoff) => cutoff.uid));
  const others = state.cutoffs.filter((cutoff) => !wantedUids.has(cutoff.uid));
  // Its end may have been brought forward since it was put.
  const isOver = (cutoff: Cutoff): boolean => !isInForce(cutoff, now) || overUids.has(cutoff.uid);
  return {
    put,
    expired: others.filter(isOver),
    missing: others.filter((cutoff) => cutoff.origin.kind === origin && !isOver(cutoff)),
  };
}

/** When the next one is over; null: none has an end. */
export function nextEndOf(cutoffs: readonly Cutoff[], now: number): number | null {
  const ends = cutoffs.flatMap(({ until }) => (until !== null && until > now ? [until] : []));
  return ends.length === 0 ? null : Math.min(...ends);
}

function isSame(a: Cutoff, b: Cutoff | undefined): boolean {
  return b !== undefined && JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

function sorted(cutoff: Cutoff): unknown {
  return Object.entries({
    ...cutoff,
    target: Object.entries(cutoff.target).sort(),
    origin: Object.entries(cutoff.origin).sort(),
  }).sort(([a], [b]) => (a < b ? -1 : 1));
}
