import { backoffMs, type Clock, wait } from '@weir/runtime';
import { StoreError } from '../errors.ts';

export interface RetryOptions {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** From [0, 1). */
  readonly random: () => number;
  /** Called once when the store becomes unreachable. */
  readonly onAway?: ((error: StoreError) => void) | undefined;
  readonly onBack?: (() => void) | undefined;
}

const RETRY_BACKOFF = { minMs: 50, maxMs: 1_000 };
/**
 * The minimum time between two retries after a GAP. The first GAP is retried at once, further ones only after this
 * time, so that a store that always returns GAP is not overloaded.
 */
const MIN_GAP_INTERVAL_MS = 1_000;

/**
 * Repeats `attempt` until `signal` aborts, with exponential backoff while the store is unreachable. An attempt calls
 * `markAlive` when the store has responded. Rejects with an error of `attempt` that is not a `StoreError`.
 */
export async function retryUntilAborted(
  { signal, clock, random, onAway, onBack }: RetryOptions,
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
    await wait(clock, backoffMs(failures, { ...RETRY_BACKOFF, random }), signal).catch(() => undefined);
  }
}
