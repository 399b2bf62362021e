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

  const report = (suspensions: readonly Suspension[], sequence: number): void => {
    const isSame =
      sequence === known.sequence &&
      suspensions.length === known.cutoffs.length &&
      suspensions.every((suspension, index) => suspension === known.cutoffs[index]);
    known = { cutoffs: suspensions, sequence };
    scheduleExpiry();
    if (!isSame) onSuspensions(suspensions, sequence);
  };
  const scheduleExpiry = (): void => {
    expiryTimer?.cancel();
    const nextExpiry = Math.min(...known.cutoffs.map(({ until }) => until ?? Number.POSITIVE_INFINITY));
    if (!Number.isFinite(nextExpiry)) return;
    expiryTimer = clock.setTimeout(() => {
      try {
        report(mergeSuspensions(known.cutoffs, UNCHANGED_STATE, clock.now()), known.sequence);
      } catch (error) {
        fail(error);
      }
    }, nextExpiry - clock.now());
  };

  scheduleExpiry();
  const following = retryUntilAborted({ signal, clock, random, onAway, onBack }, async (markAlive) => {
    for await (const state of store.watch(signal)) {
      markAlive();
      report(mergeSuspensions(known.cutoffs, state, clock.now()), state.sequence);
    }
  });
  try {
    await Promise.race([following, failed]);
  } finally {
    expiryTimer?.cancel();
    ended.abort();
  }
}

const UNCHANGED_STATE: SuspensionState = { sequence: 0, complete: false, suspensions: [], removed: [] };

/**
 * Returns the suspensions in force at `now` (milliseconds since the Unix epoch), sorted by uid. A complete state replaces `known`. A state
 * is incomplete after the store was wiped: the function then adds the suspensions of the state to `known` and removes only the suspensions
 * in `state.removed`.
 */
export function mergeSuspensions(
  known: readonly Suspension[],
  state: SuspensionState,
  now: number,
): readonly Suspension[] {
  const byUid = new Map<string, Suspension>();
  if (!state.complete) for (const suspension of known) byUid.set(suspension.uid, suspension);
  for (const uid of state.removed) byUid.delete(uid);
  for (const suspension of state.suspensions) byUid.set(suspension.uid, suspension);
  return [...byUid.values()]
    .filter((suspension) => isInForce(suspension, now))
    .sort((a, b) => (a.uid < b.uid ? -1 : 1));
}
