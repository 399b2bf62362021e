import type { Clock } from '@weir/runtime';

/** Replacing workers goes on meanwhile; a restart costs all that is left of this proxy, its counts included. */
const WITHOUT_WORKERS_MS = 60_000;

export interface Liveness {
  /** Once a second. */
  look(): void;
  /** Why only a restart helps. */
  readonly problem: string | undefined;
}

/** That the main thread goes on needs no look: one that hangs answers no probe. */
export function createLiveness(workers: () => number, clock: Pick<Clock, 'monotonic'>): Liveness {
  let lastUpAt = clock.monotonic();
  let now = lastUpAt;
  return {
    look() {
      now = clock.monotonic();
      if (workers() > 0) lastUpAt = now;
    },
    get problem() {
      const downS = Math.floor((now - lastUpAt) / 1_000);
      return downS * 1_000 < WITHOUT_WORKERS_MS ? undefined : `no worker has been up for ${downS} s`;
    },
  };
}
