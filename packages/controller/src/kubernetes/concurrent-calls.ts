export interface ConcurrencyOptions {
  /** The maximum number of calls that run at the same time. */
  readonly concurrency: number;
  readonly signal: AbortSignal;
}

/**
 * Calls `act` for each item, with at most `concurrency` calls at a time. After a failure or an abort, no further call starts, and the
 * promise rejects once the running calls have ended.
 */
export async function forEachConcurrently<T extends object>(
  items: readonly T[],
  options: ConcurrencyOptions,
  act: (item: T) => Promise<void>,
): Promise<void> {
  const remaining = items.values();
  await runConcurrently(() => remaining.next().value, options, act).done;
}

export interface ConcurrentRun {
  /** Resolves when `next` has returned undefined and no call is running. Rejects after a failure or an abort. */
  readonly done: Promise<void>;
  /**
   * Call this when `next` has returned undefined but has new items now. Starts calls at once while fewer than `concurrency` calls are
   * running.
   */
  wake(): void;
}

/** Like `forEachConcurrently`, for items that `next` returns one at a time until it returns undefined. */
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
