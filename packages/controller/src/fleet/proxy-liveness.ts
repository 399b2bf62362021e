import type { Heartbeat, NodeUnreachability } from '@weir/model';

/**
 * How long a missing heartbeat does not count after the store was unreachable, in a new epoch, or under a new leader. Proxies may then
 * report late.
 */
export const GRACE_PERIOD_MS = 10_000;
/** The most time by which one read increases `missingMs`, because the store may have been unreachable between two reads. */
const MAX_READ_INTERVAL_MS = 1_000;

interface ProxyState {
  readonly heartbeat: Heartbeat;
  /** How long the store was reachable since a read last found the heartbeat. */
  readonly missingMs: number;
}

/**
 * Decides which proxies are alive. The store drops a heartbeat after 3 s. A missing heartbeat does not count during a grace period. A
 * grace period also begins each time that the store is reachable again, but a heartbeat that was missing while the store was reachable
 * for `GRACE_PERIOD_MS` altogether counts in any case. Otherwise a store that is unreachable for a moment every few seconds would keep
 * dead proxies alive forever. Times are milliseconds of the monotonic clock.
 */
export class ProxyLiveness {
  readonly #stateByIncarnation = new Map<string, ProxyState>();
  #isStoreReachable = false;
  #lastReadAt: number | undefined;
  #graceUntil = Number.NEGATIVE_INFINITY;
  /** How long the store has been reachable in this term. */
  #reachableMs = 0;
  /** The value of `#reachableMs` at which this term has settled; undefined before the first grace period. */
  #settledAtReachableMs: number | undefined;

  /** Call this with the heartbeats that the store returned. */
  heartbeatsRead(heartbeats: readonly Heartbeat[], now: number): void {
    const elapsedMs = this.#elapsedSinceLastRead(now);
    this.#reachableMs += elapsedMs;
    if (!this.#isStoreReachable) this.startGracePeriod(now);
    this.#isStoreReachable = true;
    this.#lastReadAt = now;
    const present = new Set<string>();
    for (const heartbeat of heartbeats) {
      const key = `${heartbeat.node}/${heartbeat.life}`;
      present.add(key);
      this.#stateByIncarnation.set(key, { heartbeat, missingMs: 0 });
    }
    for (const [key, state] of this.#stateByIncarnation) {
      if (present.has(key)) continue;
      const missingMs = state.missingMs + elapsedMs;
      if (this.#isDead({ ...state, missingMs }, now)) this.#stateByIncarnation.delete(key);
      else this.#stateByIncarnation.set(key, { ...state, missingMs });
    }
  }

  /** Call this when the store did not answer. Proxies that were alive before still count as alive. */
  storeUnreachable(): void {
    this.#isStoreReachable = false;
  }

  startGracePeriod(now: number): void {
    this.#graceUntil = now + GRACE_PERIOD_MS;
    this.#settledAtReachableMs ??= this.#reachableMs + GRACE_PERIOD_MS;
  }

  /** Whether heartbeats of live proxies may still be missing, because this term has just begun. */
  get isSettling(): boolean {
    return this.#reachableMs < (this.#settledAtReachableMs ?? Number.POSITIVE_INFINITY);
  }

  get isStoreReachable(): boolean {
    return this.#isStoreReachable;
  }

  alive(): readonly Heartbeat[] {
    return [...this.#stateByIncarnation.values()].map(({ heartbeat }) => heartbeat);
  }

  /** A missing proxy that was draining has ended as expected, so no grace period applies. */
  #isDead({ heartbeat, missingMs }: ProxyState, now: number): boolean {
    return heartbeat.draining || now >= this.#graceUntil || missingMs >= GRACE_PERIOD_MS;
  }

  /** Returns how long the store has been reachable since the last read. After an interruption this time is unknown, so it counts as 0. */
  #elapsedSinceLastRead(now: number): number {
    return this.#isStoreReachable ? Math.min(MAX_READ_INTERVAL_MS, now - (this.#lastReadAt ?? now)) : 0;
  }
}

/** How long a node may be without a live proxy before the node counts as silent. A node that reboots is usually back sooner. */
const SILENT_AFTER_MS = 30_000;
const LOST_AFTER_MS = 300_000;

/** The result of one read of the heartbeats. */
export interface HeartbeatRound {
  /** Names of the nodes that should have a proxy. */
  readonly nodes: readonly string[];
  /** Names of the nodes with a live proxy. */
  readonly heardNodes: ReadonlySet<string>;
  /** When the heartbeats were read, in milliseconds of the monotonic clock. */
  readonly now: number;
  /** Names of the nodes that have ever had a proxy, under any leader. Used only in the first round of a term. */
  readonly known?: ReadonlySet<string>;
}

/** Tracks how long each node has been without a live proxy. */
export class UnreachableNodes {
  readonly #missingSinceByNode = new Map<string, number>();
  /**
   * Nodes that had a proxy before this term and have had none in this term. These nodes may have been unreachable for a long time, so they
   * count as silent at once and get no new allocations. Nodes that never had a proxy, as in a new fleet, are not included: otherwise every
   * allocation would go to the node whose proxy starts first.
   */
  #missingAtStart: ReadonlySet<string> | undefined;
  #states: ReadonlyMap<string, NodeUnreachability> = new Map();
  #lastRoundAt: number | undefined;
  #isPaused = false;

  /** The states by node name. The map is the same object until a state changes. */
  get states(): ReadonlyMap<string, NodeUnreachability> {
    return this.#states;
  }

  update({ nodes, heardNodes, now, known = new Set() }: HeartbeatRound): void {
    const pausedMs = this.#isPaused ? now - (this.#lastRoundAt ?? now) : 0;
    this.#isPaused = false;
    this.#lastRoundAt = now;
    for (const [name, since] of this.#missingSinceByNode) this.#missingSinceByNode.set(name, since + pausedMs);
    const missing = new Set(nodes.filter((name) => !heardNodes.has(name)));
    for (const name of this.#missingSinceByNode.keys()) if (!missing.has(name)) this.#missingSinceByNode.delete(name);
    for (const name of missing) if (!this.#missingSinceByNode.has(name)) this.#missingSinceByNode.set(name, now);
    this.#missingAtStart = new Set([...(this.#missingAtStart ?? known)].filter((name) => missing.has(name)));
    this.#setStates(
      [...this.#missingSinceByNode].flatMap(([name, since]) =>
        stateAfter(now - since, this.#missingAtStart?.has(name) ? 'silent' : undefined).map((each) => [name, each]),
      ),
    );
  }

  /** Call this when the store is unreachable. The time between the last round and the next round then counts for no node. */
  pause(): void {
    this.#isPaused = true;
  }

  #setStates(entries: readonly (readonly [string, NodeUnreachability])[]): void {
    const isUnchanged =
      entries.length === this.#states.size && entries.every(([name, state]) => this.#states.get(name) === state);
    if (!isUnchanged) this.#states = new Map(entries);
  }
}

function stateAfter(ms: number, before: NodeUnreachability | undefined): readonly NodeUnreachability[] {
  if (ms >= LOST_AFTER_MS) return ['lost'];
  if (ms >= SILENT_AFTER_MS) return ['silent'];
  return before === undefined ? [] : [before];
}
