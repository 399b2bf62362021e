import { isInForce, type Suspension } from '@weir/model/data-plane';
import { type Clock, systemClock, type Timer } from '@weir/runtime';
import type { SuspensionState, SuspensionStore } from '../contract.ts';
import type { StoreError } from '../errors.ts';
import { retryUntilAborted } from './retry-until-aborted.ts';

export interface KnownSuspensions {
  readonly cutoffs: readonly Suspension[];
  /** The highest sequence of the states that `cutoffs` comes from. */
  readonly sequence: number;
}

export interface FollowSuspensionsOptions {
  readonly signal: AbortSignal;
  /** The suspensions with which the follower starts, from the proxy's state file. */
  readonly from?: KnownSuspensions | undefined;
  /**
   * Called with all suspensions in force, sorted by uid: when the first state is read, after each change, and when a suspension expires.
   */
  readonly onSuspensions: (suspensions: readonly Suspension[], sequence: number) => void;
  /** Called once per outage, when the store becomes unreachable. The known suspensions stay in force. */
  readonly onAway?: (error: StoreError) => void;
  readonly onBack?: () => void;
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
  let known: KnownSuspensions = options.from ?? { cutoffs: [], sequence: -1 };
  let expiryTimer: Timer | undefined;

  const report = (next: KnownSuspensions): void => {
    const isSame =
      next.sequence === known.sequence &&
      next.cutoffs.length === known.cutoffs.length &&
      next.cutoffs.every((suspension, index) => suspension === known.cutoffs[index]);
    known = next;
    scheduleExpiry();
    if (!isSame) onSuspensions(known.cutoffs, known.sequence);
  };
  const scheduleExpiry = (): void => {
    expiryTimer?.cancel();
    const nextExpiry = Math.min(...known.cutoffs.map(({ until }) => until ?? Number.POSITIVE_INFINITY));
    if (!Number.isFinite(nextExpiry)) return;
    expiryTimer = clock.setTimeout(() => {
      try {
        const now = clock.now();
        report({ ...known, cutoffs: known.cutoffs.filter((suspension) => isInForce(suspension, now)) });
      } catch (error) {
        fail(error);
      }
    }, nextExpiry - clock.now());
  };

  scheduleExpiry();
  const following = retryUntilAborted({ signal, clock, random, onAway, onBack }, async (markAlive) => {
    for await (const state of store.watch(signal)) {
      markAlive();
      report(mergeSuspensions(known, state, clock.now()));
    }
  });
  try {
    await Promise.race([following, failed]);
  } finally {
    expiryTimer?.cancel();
    ended.abort();
  }
}

/**
 * Returns the suspensions in force at `now` (milliseconds since the Unix epoch), sorted by uid, and the sequence up to which they are known.
 * A suspension that is known is changed or lifted only by a change with a higher sequence than `known.sequence`: by a put or a removal of
 * this suspension, or by a declaration that the list is complete. A state that a rollback or a wipe of the store made older therefore only
 * adds suspensions.
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
  const cutoffs = [...byUid.values()]
    .filter((suspension) => isInForce(suspension, now))
    .sort((a, b) => (a.uid < b.uid ? -1 : 1));
  return { cutoffs, sequence: Math.max(known.sequence, state.sequence) };
}
