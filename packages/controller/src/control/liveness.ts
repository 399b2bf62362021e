import type { Heartbeat } from '@weir/model';

/** After a reconnect, a failover, a new epoch or a new leader: who is not heard may only not have been heard yet. */
export const GRACE_MS = 10_000;

/**
 * Which proxies count as alive. The store drops a heartbeat after 3 s; that only counts as silence of the proxy when the store
 * answered us all the while, else it may be ours. Times are of a clock that never jumps, in milliseconds.
 */
export class Liveness {
  readonly #heard = new Map<string, Heartbeat>();
  #isReachable = false;
  #graceUntil = Number.NEGATIVE_INFINITY;

  /** The store answered, with the heartbeats that it holds. */
  answered(heartbeats: readonly Heartbeat[], now: number): void {
    if (!this.#isReachable) this.grace(now);
    this.#isReachable = true;
    const present = new Set<string>();
    for (const heartbeat of heartbeats) {
      const key = `${heartbeat.node}/${heartbeat.life}`;
      present.add(key);
      this.#heard.set(key, heartbeat);
    }
    for (const [key, heartbeat] of this.#heard) {
      // One that was draining has said good-bye.
      if (!present.has(key) && (heartbeat.draining || !this.isInGrace(now))) this.#heard.delete(key);
    }
  }

  /** The store did not answer: nothing is known from now on, and nobody dies of it. */
  silent(): void {
    this.#isReachable = false;
  }

  grace(now: number): void {
    this.#graceUntil = now + GRACE_MS;
  }

  isInGrace(now: number): boolean {
    return now < this.#graceUntil;
  }

  get isReachable(): boolean {
    return this.#isReachable;
  }

  alive(): readonly Heartbeat[] {
    return [...this.#heard.values()];
  }
}
