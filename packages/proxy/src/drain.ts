import { type Clock, wait } from '@weir/runtime';
import type { SlotBook } from './counters/slot-book.ts';
import type { WorkerPool } from './workers/worker-pool.ts';

const LOOK_EACH_MS = 50;
/** For workers to close listeners, and to reset what is left. A worker that takes longer is dead. */
const ORDERS_MS = 3_000;

export interface DrainOptions {
  readonly pool: WorkerPool;
  readonly slots: SlotBook;
  readonly clock: Clock;
  readonly drainMs: number;
  /** Aborted: waits no longer. */
  readonly hurry: AbortSignal;
}

/** After the listeners were closed: waits for the open connections, and resets those that are left. */
export async function drainConnections({ pool, slots, clock, drainMs, hurry }: DrainOptions): Promise<void> {
  const until = async (isDone: () => boolean, limitMs: number, signal?: AbortSignal): Promise<void> => {
    const end = clock.monotonic() + limitMs;
    while (!isDone() && clock.monotonic() < end && signal?.aborted !== true) {
      await wait(clock, Math.min(LOOK_EACH_MS, end - clock.monotonic()), signal).catch(() => undefined);
    }
  };
  // What was accepted until the last listener closed counts, too.
  const closed = pool.mark();
  await until(() => pool.reached === 0 || pool.reached >= closed, ORDERS_MS);
  await until(() => slots.active() === 0, drainMs, hurry);
  if (slots.active() === 0) return;
  pool.post({ kind: 'sever', outcome: 'drained' });
  await until(() => slots.active() === 0, ORDERS_MS);
}
