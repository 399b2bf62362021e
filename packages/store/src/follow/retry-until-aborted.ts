import { backoffMs, type Clock, wait } from '@weir/runtime';
import { StoreError } from '../errors.ts';

export interface RetryOptions {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Returns a random number from 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
  /** Called once per outage, when the store becomes unreachable. */
  readonly onAway?: ((error: StoreError) => void) | undefined;
  readonly onBack?: (() => void) | undefined;
  readonly onReady?: SubscribeToReady | undefined;
}

/**
 * Calls `listener` each time the connection to the store is established; returns a function that removes the listener. With this
 * function, a follower reads the store again as soon as the store is reachable. Without it, the follower notices after its next delay.
 */
export type SubscribeToReady = (listener: () => void) => () => void;

const RETRY_BACKOFF = { minMs: 50, maxMs: 1_000 };
/**
 * A GAP is retried without delay only if the previous GAP was at least this long ago. Otherwise the retry waits for the backoff, so that a
 * store that always returns GAP is not overloaded.
 */
const MIN_GAP_INTERVAL_MS = 1_000;

/**
 * Repeats `attempt` until `signal` aborts. Waits after each failure, with exponential backoff, at most until `onReady` calls its listener.
 * `attempt` must call `markAlive` when the store has responded. Rejects with an error of `attempt` that is not a `StoreError`.
 */
export async function retryUntilAborted(
  { signal, clock, random, onAway, onBack, onReady }: RetryOptions,
  attempt: (markAlive: () => void) => Promise<void>,
): Promise<void> {
  let failures = 0;
  let isAway = false;
  let lastGapAt = Number.NEGATIVE_INFINITY;
  const markAlive = (): void => {
    failures = 0;
    if (isAway) onBack?.();
    isAway = false;
  };
  while (!signal.aborted) {
    try {
      await attempt(markAlive);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof StoreError)) throw error;
      failures += 1;
      if (error.code === 'GAP') {
        const isFirst = clock.monotonic() - lastGapAt >= MIN_GAP_INTERVAL_MS;
        lastGapAt = clock.monotonic();
        if (isFirst) continue;
      } else if (!isAway) {
        isAway = true;
        onAway?.(error);
      }
    }
    const delayMs = backoffMs(failures, { ...RETRY_BACKOFF, random });
    const ready = new AbortController();
    const unsubscribe = onReady?.(() => ready.abort());
    await wait(clock, delayMs, AbortSignal.any([signal, ready.signal])).catch(() => undefined);
    unsubscribe?.();
  }
}
