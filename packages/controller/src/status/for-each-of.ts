/** Runs `act` over the items, a few at a time. The first failure ends it, after those under way; so does the signal. */
export async function forEachOf<T>(
  items: readonly T[],
  { at, signal }: { readonly at: number; readonly signal: AbortSignal },
  act: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  let failure: { readonly error: unknown } | undefined;
  const worker = async (): Promise<void> => {
    for (const item of rest) {
      if (failure !== undefined || signal.aborted) return;
      try {
        await act(item);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(at, items.length) }, worker));
  if (failure !== undefined) throw failure.error;
  signal.throwIfAborted();
}
