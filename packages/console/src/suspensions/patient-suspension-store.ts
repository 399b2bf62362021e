import { type Clock, wait } from '@weir/runtime';
import { StoreError, type SuspensionStore } from '@weir/store';

/** How long a suspension waits for an unreachable store. Longer than the longest time between two attempts to connect to Redis, 2 s. */
const MAX_WAIT_MS = 3_000;
const RETRY_INTERVAL_MS = 100;

/**
 * Returns the store, but with a `read` and a `put` that try again for up to 3 s while the store is unreachable, so that a restart or a
 * failover of Redis does not refuse a suspension. A `put` may be sent twice, because the store ignores an identical suspension.
 */
export function patientSuspensionStore(store: SuspensionStore, clock: Clock): SuspensionStore {
  const retry = async <Result>(call: () => Promise<Result>): Promise<Result> => {
    const giveUpAt = clock.monotonic() + MAX_WAIT_MS;
    for (;;) {
      try {
        return await call();
      } catch (error) {
        const isAway = error instanceof StoreError && error.code === 'AWAY';
        if (!isAway || clock.monotonic() >= giveUpAt) throw error;
        await wait(clock, RETRY_INTERVAL_MS);
      }
    }
  };
  return {
    put: (suspension, adopts) => retry(() => store.put(suspension, adopts)),
    read: () => retry(() => store.read()),
    remove: (uid, release) => store.remove(uid, release),
    markComplete: (known) => store.markComplete(known),
    watch: (signal) => store.watch(signal),
    audit: (before) => store.audit(before),
  };
}
