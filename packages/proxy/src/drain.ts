import { type Clock, wait } from '@weir/runtime';
import type { SlotRegistry } from './counters/slot-book.ts';
import type { WorkerPool } from './workers/worker-pool.ts';

const DRAIN_POLL_INTERVAL_MS = 50;
/** For workers to close listeners, and to reset what is left. A worker that takes longer is dead. */
const COMMAND_TIMEOUT_MS = 3_000;

export interface DrainOptions {
  readonly pool: WorkerPool;
  readonly slots: SlotRegistry;
  readonly clock: Clock;
  readonly drainMs: number;
  /** Aborted: waits no longer. */
  readonly abort: AbortSignal;
}

/** After the listeners were closed: waits for the open connections, and resets those that are left. */
export async function drainConnections({ pool, slots, clock, drainMs, abort }: DrainOptions): Promise<void> {
  const until = async (isDone: () => boolean, limitMs: number, signal?: AbortSignal): Promise<void> => {
    const end = clock.monotonic() + limitMs;
    while (!isDone() && clock.monotonic() < end && signal?.aborted !== true) {
      await wait(clock, Math.min(DRAIN_POLL_INTERVAL_MS, end - clock.monotonic()), signal).catch(() => undefined);
    }
  };
  // What was accepted until the last listener closed counts, too.
  const closed = pool.mark();
  await until(() => pool.reached === 0 || pool.reached >= closed, COMMAND_TIMEOUT_MS);
  await until(() => slots.activeConnections() === 0, drainMs, abort);
  if (slots.activeConnections() === 0) return;
  pool.post({ kind: 'sever', outcome: 'drained' });
  await until(() => slots.activeConnections() === 0, COMMAND_TIMEOUT_MS);
}
