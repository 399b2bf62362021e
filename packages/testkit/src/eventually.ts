export type EventuallyOptions = { readonly timeoutMs?: number; readonly intervalMs?: number };

/**
 * Repeats an assertion until it holds, and returns what it returned; after the timeout throws the last failure.
 * Only for the state of other processes (a status in the API server, a key in Redis), which send us no event to wait for:
 * this is the one place in the tests that waits on a clock. Inside one process wait for the event.
 */
export async function eventually<T>(assertion: () => T | Promise<T>, options: EventuallyOptions = {}): Promise<T> {
  const { timeoutMs = 10_000, intervalMs = 20 } = options;
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await assertion();
    } catch (error) {
      if (performance.now() >= deadline) throw new Error(timeoutMessage(error, timeoutMs), { cause: error });
    }
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
}

function timeoutMessage(error: unknown, timeoutMs: number): string {
  return `still so after ${timeoutMs} ms: ${error instanceof Error ? error.message : String(error)}`;
}
