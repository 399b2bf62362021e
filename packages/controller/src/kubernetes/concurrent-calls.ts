export interface ConcurrencyOptions {
  /** So many at once. */
  readonly concurrency: number;
  readonly signal: AbortSignal;
}

/** Runs `act` over the items, a few at a time. The first failure ends it, after those under way; so does the signal. */
export async function forEachConcurrently<T extends object>(
  items: readonly T[],
  turns: ConcurrencyOptions,
  act: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  await runConcurrently(() => rest.next().value, turns, act).done;
}

export interface ConcurrentRun {
  /** Nothing is next, and nothing under way. */
  readonly done: Promise<void>;
  /** Something may be next that was not: it waits for none of those under way while there is room for it. */
  wake(): void;
}

/** The same over whatever is next when there is room for it, until nothing is. */
export function runConcurrently<T extends object | string>(
  next: () => T | undefined,
  { concurrency, signal }: ConcurrencyOptions,
  act: (item: T) => Promise<void>,
): ConcurrentRun {
  const { promise: done, resolve, reject } = Promise.withResolvers<void>();
  let failure: { readonly error: unknown } | undefined;
  let running = 0;
  let isOver = false;
  const wake = (): void => {
    while (!isOver && running < concurrency && failure === undefined && !signal.aborted) {
      const item = next();
      if (item === undefined) break;
      running += 1;
      void run(item);
    }
    if (isOver || running > 0) return;
    isOver = true;
    if (failure !== undefined) reject(failure.error);
    else if (signal.aborted) reject(signal.reason);
    else resolve();
  };
  const run = async (item: T): Promise<void> => {
    try {
      await act(item);
    } catch (error) {
      failure ??= { error };
    }
    running -= 1;
    wake();
  };
  wake();
  return { done, wake };
}
