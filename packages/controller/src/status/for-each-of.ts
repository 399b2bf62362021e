export interface Turns {
  /** So many at once. */
  readonly at: number;
  readonly signal: AbortSignal;
}

/** Runs `act` over the items, a few at a time. The first failure ends it, after those under way; so does the signal. */
export async function forEachOf<T extends object>(
  items: readonly T[],
  turns: Turns,
  act: (item: T) => Promise<void>,
): Promise<void> {
  const rest = items.values();
  await drain(() => rest.next().value, turns, act).done;
}

export interface Drain {
  /** Nothing is next, and nothing under way. */
  readonly done: Promise<void>;
  /** Something may be next that was not: it waits for none of those under way while there is room for it. */
  more(): void;
}

/** The same over whatever is next when there is room for it, until nothing is. */
export function drain<T extends object | string>(
  next: () => T | undefined,
  { at, signal }: Turns,
  act: (item: T) => Promise<void>,
): Drain {
  const { promise: done, resolve, reject } = Promise.withResolvers<void>();
  let failure: { readonly error: unknown } | undefined;
  let running = 0;
  let isOver = false;
  const more = (): void => {
    while (!isOver && running < at && failure === undefined && !signal.aborted) {
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
    more();
  };
  more();
  return { done, more };
}
