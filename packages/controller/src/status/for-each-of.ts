export interface Turns {
  /** So many at once. */
  readonly at: number;
  readonly signal: AbortSignal;
}

/** Runs `act` over the items, a few at a time. The first failure ends it, after those under way; so does the signal. */
export async function forEachOf<T extends object>(
  items: readonly T[],
  { at, signal }: Turns,
  act: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  await drain(() => rest.next().value, { at: Math.min(at, items.length), signal }, act);
}

/** The same over whatever is next when there is room for it, until nothing is. */
export async function drain<T extends object | string>(
  next: () => T | undefined,
  { at, signal }: Turns,
  act: (item: T) => Promise<void>,
): Promise<void> {
  let failure: { readonly error: unknown } | undefined;
  const worker = async (): Promise<void> => {
    while (failure === undefined && !signal.aborted) {
      const item = next();
      if (item === undefined) return;
      try {
        await act(item);
      } catch (error) {
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: at }, worker));
  if (failure !== undefined) throw failure.error;
  signal.throwIfAborted();
}
