import type { Heartbeat } from '@weir/model';

/** After a reconnect, a failover, a new epoch or a new leader: who is not heard may only not have been heard yet. */
export const GRACE_PERIOD_MS = 10_000;

/**
 * Which proxies count as alive. The store drops a heartbeat after 3 s; that only counts as silence of the proxy when the store
 * answered us all the while, else it may be ours. Times are of a clock that never jumps, in milliseconds.
 */
export class ProxyLiveness {
  readonly #heartbeatByIncarnation = new Map<string, Heartbeat>();
  #isStoreReachable = false;
  #graceUntil = Number.NEGATIVE_INFINITY;

  /** The store answered, with the heartbeats that it holds. */
  heartbeatsRead(heartbeats: readonly Heartbeat[], now: number): void {
    if (!this.#isStoreReachable) this.startGracePeriod(now);
    this.#isStoreReachable = true;
    const present = new Set<string>();
    for (const heartbeat of heartbeats) {
      const key = `${heartbeat.node}/${heartbeat.life}`;
      present.add(key);
      this.#heartbeatByIncarnation.set(key, heartbeat);
    }
    for (const [key, heartbeat] of this.#heartbeatByIncarnation) {
      // One that was draining has said good-bye.
      if (!present.has(key) && (heartbeat.draining || !this.isInGracePeriod(now)))
        this.#heartbeatByIncarnation.delete(key);
    }
  }

  /** The store did not answer: nothing is known from now on, and nobody dies of it. */
  storeUnreachable(): void {
    this.#isStoreReachable = false;
  }

  startGracePeriod(now: number): void {
    this.#graceUntil = now + GRACE_PERIOD_MS;
  }

  isInGracePeriod(now: number): boolean {
    return now < this.#graceUntil;
  }

  get isStoreReachable(): boolean {
    return this.#isStoreReachable;
  }

  alive(): readonly Heartbeat[] {
    return [...this.#heartbeatByIncarnation.values()];
  }
}
