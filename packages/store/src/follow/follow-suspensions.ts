import { isInForce, type Suspension } from '@weir/model/data-plane';
import { type Clock, systemClock, type Timer } from '@weir/runtime';
import type { SuspensionState, SuspensionStore } from '../contract.ts';
import type { StoreError } from '../errors.ts';
import { retryUntilAborted, type SubscribeToReady } from './retry-until-aborted.ts';

export interface KnownSuspensions {
  readonly cutoffs: readonly Suspension[];
  /** The highest sequence of the states that `cutoffs` comes from. */
  readonly sequence: number;
}

/** How often the ends of suspensions are compared with the wall clock, because the clock of a host may be corrected. */
const CLOCK_CHECK_MS = 10_000;
/** How long a suspension is remembered after its end, in case the clock was ahead. */
const KEEP_EXPIRED_MS = 86_400_000;

export interface FollowSuspensionsOptions {
  readonly signal: AbortSignal;
  /** The suspensions with which the follower starts, from the proxy's state file. */
  readonly from?: KnownSuspensions | undefined;
  /**
   * Called with all suspensions in force, sorted by uid: when the first state is read, after each change, when a suspension expires, and when
   * the clock was set.
   */
  readonly onSuspensions: (suspensions: readonly Suspension[], sequence: number) => void;
  /** Called once per outage, when the store becomes unreachable. The known suspensions stay in force. */
  readonly onAway?: (error: StoreError) => void;
  readonly onBack?: () => void;
  readonly onReady?: SubscribeToReady;
  readonly clock?: Clock;
  readonly random?: () => number;
}

/**
 * Calls `onSuspensions` with the suspensions in force until `signal` aborts, and then resolves. Rejects only with an error that a callback
 * throws.
 */
export async function followSuspensions(store: SuspensionStore, options: FollowSuspensionsOptions): Promise<void> {
  const { onSuspensions, onAway, onBack, clock = systemClock, random = Math.random } = options;
  const ended = new AbortController();
  const signal = AbortSignal.any([options.signal, ended.signal]);
  const { promise: failed, reject: fail } = Promise.withResolvers<never>();
  let reported: KnownSuspensions = options.from ?? { cutoffs: [], sequence: -1 };
  /** Contains also suspensions whose end has passed. */
  let known = reported;
  let checkTimer: Timer | undefined;

  const report = (): void => {
    const { cutoffs, sequence } = inForceAt(known, clock.now());
    const isSame =
      sequence === reported.sequence &&
      cutoffs.length === reported.cutoffs.length &&
      cutoffs.every((suspension, index) => suspension === reported.cutoffs[index]);
    reported = { cutoffs, sequence };
    scheduleCheck();
    if (!isSame) onSuspensions(cutoffs, sequence);
  };
  const scheduleCheck = (): void => {
    checkTimer?.cancel();
    const now = clock.now();
    known = inForceAt(known, now - KEEP_EXPIRED_MS);
    const ends = known.cutoffs.flatMap(({ until }) => (until === null ? [] : [until]));
    if (ends.length === 0) return;
    const untilNextEnd = Math.min(...ends.filter((end) => end > now)) - now;
    checkTimer = clock.setTimeout(
      () => {
        try {
          report();
        } catch (error) {
          fail(error);
        }
      },
      Math.min(CLOCK_CHECK_MS, untilNextEnd),
    );
  };

  const following = retryUntilAborted(
    { signal, clock, random, onAway, onBack, onReady: options.onReady },
    async (markAlive) => {
      for await (const state of store.watch(signal)) {
        markAlive();
        known = mergeSuspensions(known, state, clock.now() - KEEP_EXPIRED_MS);
        report();
      }
    },
  );
  try {
    // Suspensions of the state file may have ended since they were written.
    report();
    await Promise.race([following, failed]);
  } finally {
    checkTimer?.cancel();
    ended.abort();
  }
}

/**
 * Returns the suspensions in force at `now` (milliseconds since the Unix epoch), sorted by uid, and the sequence up to which they are known.
 * Only a change with a higher sequence than `known.sequence` changes or lifts a known suspension: a put or a removal of this suspension, or
 * a declaration that the list is complete. A state that is older because of a rollback or a wipe of the store therefore only adds
 * suspensions.
 */
export function mergeSuspensions(known: KnownSuspensions, state: SuspensionState, now: number): KnownSuspensions {
  const isComplete = state.completeSince !== null && state.completeSince > known.sequence;
  const byUid = new Map((isComplete ? [] : known.cutoffs).map((suspension) => [suspension.uid, suspension]));
  const listed = new Map(state.suspensions.map((suspension) => [suspension.uid, suspension]));
  for (const [uid, changedAt] of state.changes) {
    if (changedAt > known.sequence && !listed.has(uid)) byUid.delete(uid);
  }
  for (const [uid, suspension] of listed) {
    const isNewer = (state.changes.get(uid) ?? 0) > known.sequence;
    if (isNewer || !byUid.has(uid)) byUid.set(uid, suspension);
  }
  const cutoffs = [...byUid.values()].sort((a, b) => (a.uid < b.uid ? -1 : 1));
  return inForceAt({ cutoffs, sequence: Math.max(known.sequence, state.sequence) }, now);
}

function inForceAt({ cutoffs, sequence }: KnownSuspensions, now: number): KnownSuspensions {
  return { cutoffs: cutoffs.filter((suspension) => isInForce(suspension, now)), sequence };
}
