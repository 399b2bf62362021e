import { systemClock, wait } from '@weir/runtime';

/** Resolves when the signal is aborted. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal.aborted) resolve();
  else signal.addEventListener('abort', () => resolve(), { once: true });
  return promise;
}

const POLL_INTERVAL_MS = 20;

export interface PollOptions {
  readonly withinMs: number;
  readonly signal: AbortSignal;
}

/**
 * Checks the condition every 20 ms. Resolves with whether the condition became true within `withinMs`. Rejects if the signal is aborted.
 */
export async function pollUntil(
  condition: () => boolean | Promise<boolean>,
  { withinMs, signal }: PollOptions,
): Promise<boolean> {
  const deadline = systemClock.monotonic() + withinMs;
  while (!(await condition())) {
    if (systemClock.monotonic() > deadline) return false;
    await wait(systemClock, POLL_INTERVAL_MS, signal);
  }
  return true;
}
