import type { Clock } from '@weir/runtime';

/** Replacing workers goes on meanwhile; a restart costs all that is left of this proxy, its counts included. */
const MAX_TIME_WITHOUT_WORKERS_MS = 60_000;

export interface WorkerLiveness {
  /** Once a second. */
  check(): void;
  /** Why only a restart helps. */
  readonly problem: string | undefined;
}

/** That the main thread goes on needs no look: one that hangs answers no probe. */
export function createWorkerLiveness(workers: () => number, clock: Pick<Clock, 'monotonic'>): WorkerLiveness {
  let lastUpAt = clock.monotonic();
  let now = lastUpAt;
  return {
    check() {
      now = clock.monotonic();
      if (workers() > 0) lastUpAt = now;
    },
    get problem() {
      const downS = Math.floor((now - lastUpAt) / 1_000);
      return downS * 1_000 < MAX_TIME_WITHOUT_WORKERS_MS ? undefined : `no worker has been up for ${downS} s`;
    },
  };
}
