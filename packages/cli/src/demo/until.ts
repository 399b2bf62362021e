import { systemClock, wait } from '@weir/runtime';

const POLL_INTERVAL_MS = 20;

/** Whether the condition came true within the time; it is looked at again and again. */
export async function pollUntil(
  condition: () => boolean | Promise<boolean>,
  { withinMs, signal }: { readonly withinMs: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const deadline = systemClock.monotonic() + withinMs;
  while (!(await condition())) {
    if (systemClock.monotonic() > deadline) return false;
    await wait(systemClock, POLL_INTERVAL_MS, signal);
  }
  return true;
}
