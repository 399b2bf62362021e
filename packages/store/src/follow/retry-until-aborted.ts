import { backoffMs, type Clock, wait } from '@weir/runtime';
import { StoreError } from '../errors.ts';

export interface RetryOptions {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** From [0, 1). */
  readonly random: () => number;
  /** The store is away: told once, until it is back. */
  readonly onAway?: ((error: StoreError) => void) | undefined;
  readonly onBack?: (() => void) | undefined;
}

const RETRY_BACKOFF = { minMs: 50, maxMs: 1_000 };
/** A gap is answered at once, but not the next one after it: a store that is all gaps must not be hammered. */
const MIN_GAP_INTERVAL_MS = 1_000;

/**
 * Runs `attempt` again and again until the signal aborts, with pauses that grow while the store is away. An attempt calls
 * `alive` when the store has answered. What is thrown that is not a `StoreError` ends it.
 */
export async function retryUntilAborted(
  { signal, clock, random, onAway, onBack }: RetryOptions,
  attempt: (alive: () => void) => Promise<void>,
): Promise<void> {
  let failures = 0;
  let isAway = false;
  let lastGapAt = Number.NEGATIVE_INFINITY;
  const alive = (): void => {
    failures = 0;
    if (isAway) onBack?.();
    isAway = false;
  };
  while (!signal.aborted) {
    try {
      await attempt(alive);
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
