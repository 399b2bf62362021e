import type { Heartbeat, NodeUnreachability } from '@weir/model';

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

/** A node that reboots is back before. */
const SILENT_AFTER_MS = 30_000;
const LOST_AFTER_MS = 300_000;

/** What of the fleet is known at a moment. Times are of a clock that never jumps, in milliseconds. */
export interface HeartbeatRound {
  /** Names of the nodes that should have a proxy. */
  readonly nodes: Iterable<string>;
  /** Names of those of which one was heard. */
  readonly heardNodes: ReadonlySet<string>;
  readonly now: number;
  /** Names of nodes of which one was heard at some time, by whoever led; only of interest when nothing was listened to before. */
  readonly known?: ReadonlySet<string>;
}

/** For how long which nodes have been without a proxy that we hear. */
export class UnreachableNodes {
  /** By name, since when. */
  readonly #missingSinceByNode = new Map<string, number>();
  /**
   * Names of those that had a proxy and were without when the listening began: they may have been for long, so nothing new is put
   * there. Of a fleet that starts for the first time there are none, else all would be put on whoever is first.
   */
  #missingAtStart: ReadonlySet<string> | undefined;
  #states: ReadonlyMap<string, NodeUnreachability> = new Map();
  #lastRoundAt: number | undefined;
  #isPaused = false;

  /** The same map until somebody comes, goes, or has been away for long. */
  get states(): ReadonlyMap<string, NodeUnreachability> {
    return this.#states;
  }

  update({ nodes, heardNodes, now, known = new Set() }: HeartbeatRound): void {
    const deafMs = this.#isPaused ? now - (this.#lastRoundAt ?? now) : 0;
    this.#isPaused = false;
    this.#lastRoundAt = now;
    for (const [name, since] of this.#missingSinceByNode) this.#missingSinceByNode.set(name, since + deafMs);
    const missing = new Set([...nodes].filter((name) => !heardNodes.has(name)));
    for (const name of this.#missingSinceByNode.keys()) if (!missing.has(name)) this.#missingSinceByNode.delete(name);
    for (const name of missing) if (!this.#missingSinceByNode.has(name)) this.#missingSinceByNode.set(name, now);
    this.#missingAtStart = new Set([...(this.#missingAtStart ?? known)].filter((name) => missing.has(name)));
    this.#setStates(
      [...this.#missingSinceByNode].flatMap(([name, since]) =>
        stateAfter(now - since, this.#missingAtStart?.has(name) ? 'silent' : undefined).map((each) => [name, each]),
      ),
    );
  }

  /** The store does not answer, so nobody can be heard: the time until it does counts for nobody. */
  pause(): void {
    this.#isPaused = true;
  }

  #setStates(entries: readonly (readonly [string, NodeUnreachability])[]): void {
    const isSame =
      entries.length === this.#states.size && entries.every(([name, absence]) => this.#states.get(name) === absence);
    if (!isSame) this.#states = new Map(entries);
  }
}

function stateAfter(ms: number, before: NodeUnreachability | undefined): readonly NodeUnreachability[] {
  if (ms >= LOST_AFTER_MS) return ['lost'];
  if (ms >= SILENT_AFTER_MS) return ['silent'];
  return before === undefined ? [] : [before];
}
