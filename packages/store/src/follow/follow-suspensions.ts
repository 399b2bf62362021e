import { isInForce, type Suspension } from '@weir/model/data-plane';
import { type Clock, systemClock, type Timer } from '@weir/runtime';
import type { SuspensionState, SuspensionStore } from '../contract.ts';
import type { StoreError } from '../errors.ts';
import { retryUntilAborted } from './retry-until-aborted.ts';

export interface KnownSuspensions {
  readonly cutoffs: readonly Suspension[];
  readonly sequence: number;
}

export interface FollowSuspensionsOptions {
  readonly signal: AbortSignal;
  /** Those of the copy on the disk. */
  readonly from?: KnownSuspensions | undefined;
  /** All that are in force now, by uid; called at first, after each change, and when the `until` of one passes. */
  readonly onSuspensions: (cutoffs: readonly Suspension[], sequence: number) => void;
  /** The store is away: told once, until it is back. The cut-offs stay. */
  readonly onAway?: (error: StoreError) => void;
  readonly onBack?: () => void;
  readonly clock?: Clock;
  readonly random?: () => number;
}

/** Tells of the cut-offs in force until the signal aborts; then it resolves. Rejects only with what a listener throws. */
export async function followSuspensions(store: SuspensionStore, options: FollowSuspensionsOptions): Promise<void> {
  const { onSuspensions, onAway, onBack, clock = systemClock, random = Math.random } = options;
  const ended = new AbortController();
  const signal = AbortSignal.any([options.signal, ended.signal]);
  const { promise: failed, reject: fail } = Promise.withResolvers<never>();
  let known: KnownSuspensions = options.from ?? { cutoffs: [], sequence: -1 };
  let nextEnd: Timer | undefined;

  const tell = (cutoffs: readonly Suspension[], sequence: number): void => {
    const isSame =
      sequence === known.sequence &&
      cutoffs.length === known.cutoffs.length &&
      cutoffs.every((cutoff, index) => cutoff === known.cutoffs[index]);
    known = { cutoffs, sequence };
    wakeAtNextEnd();
    if (!isSame) onSuspensions(cutoffs, sequence);
  };
  const wakeAtNextEnd = (): void => {
    nextEnd?.cancel();
    const at = Math.min(...known.cutoffs.map((cutoff) => cutoff.until ?? Number.POSITIVE_INFINITY));
    if (!Number.isFinite(at)) return;
    nextEnd = clock.setTimeout(() => {
      try {
        tell(mergeSuspensions(known.cutoffs, UNCHANGED_STATE, clock.now()), known.sequence);
      } catch (error) {
        fail(error);
      }
    }, at - clock.now());
  };

  wakeAtNextEnd();
  const following = retryUntilAborted({ signal, clock, random, onAway, onBack }, async (alive) => {
    for await (const state of store.watch(signal)) {
      alive();
      tell(mergeSuspensions(known.cutoffs, state, clock.now()), state.sequence);
    }
  });
  try {
    await Promise.race([following, failed]);
  } finally {
    nextEnd?.cancel();
    ended.abort();
  }
}

const UNCHANGED_STATE: SuspensionState = { sequence: 0, complete: false, suspensions: [], removed: [] };

/**
 * The cut-offs in force at `now` (milliseconds since the epoch) for one that knew `known`, by uid. A state that is complete
 * is the truth; in one that is not (the store was wiped) absence means nothing, and only what was removed since is gone.
 */
export function mergeSuspensions(
  known: readonly Suspension[],
  state: SuspensionState,
  now: number,
): readonly Suspension[] {
  const byUid = new Map<string, Suspension>();
  if (!state.complete) for (const cutoff of known) byUid.set(cutoff.uid, cutoff);
  for (const uid of state.removed) byUid.delete(uid);
  for (const cutoff of state.suspensions) byUid.set(cutoff.uid, cutoff);
  return [...byUid.values()].filter((cutoff) => isInForce(cutoff, now)).sort((a, b) => (a.uid < b.uid ? -1 : 1));
}
