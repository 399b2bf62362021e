import {
  type FleetState,
  type Heartbeat,
  isExcludedNode,
  isLoadBalancerNode,
  NodeSilence,
  type NodeUnreachability,
  ReportedViews,
  type RoutingTable,
  type ServiceView,
  ServiceViewTracker,
  type Snapshot,
  type Suspension,
  serviceId,
  type UsageNotices,
} from '@weir/model';
import { type Clock, type Logger, wait } from '@weir/runtime';
import type { HeartbeatStore } from '@weir/store';
import { LastListenerErrors, UnknownVersionProxies } from './assumed-reports.ts';
import { type HeartbeatRound, ProxyLiveness, UnreachableNodes } from './proxy-liveness.ts';

export interface FleetReconcilerOptions {
  readonly heartbeats: HeartbeatStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called with the heartbeats of all live proxies after each read. */
  readonly onHeartbeats: (heartbeats: readonly Heartbeat[]) => void;
  /** Called with the views of all Services. The list is the same object as long as no view changes. */
  readonly onViews: (views: readonly ServiceView[]) => void;
}

/** The data from which, together with the heartbeats, the views of the Services are derived. */
export interface FleetInput {
  readonly table: RoutingTable;
  /** The suspensions that are in force now. */
  readonly suspensions: readonly Suspension[];
  readonly snapshot: Snapshot;
  /** Whether the store refuses the table. */
  readonly isUnpublished: boolean;
  /** What the ledger says about tenants and Services. */
  readonly notices: UsageNotices;
}

/**
 * How long `waitForProxies` waits after the store has become reachable. A live proxy reconnects within 2 s and sends a heartbeat at
 * once.
 */
const MAX_HEARTBEAT_WAIT_MS = 3_000;
const HEARTBEAT_POLL_MS = 250;

/** Reads the heartbeats of the proxies, and derives from them which nodes are unreachable and what status the Services have. */
export class FleetReconciler {
  readonly #heartbeats: HeartbeatStore;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #onViews: FleetReconcilerOptions['onViews'];
  readonly #onHeartbeats: FleetReconcilerOptions['onHeartbeats'];
  /** The unknown-version proxies that were logged and are still present, as `node/life`. */
  #loggedUnknownVersions: ReadonlySet<string> = new Set();
  #unknownVersionProxies = new UnknownVersionProxies();
  #lastListenerErrors = new LastListenerErrors();
  #liveness = new ProxyLiveness();
  #unreachableNodes = new UnreachableNodes();
  /** Undefined before the first update of a term. */
  #silence: NodeSilence | undefined;
  #storeReachableSince: number;
  readonly #reportedViews = new ReportedViews();
  /** Remembers the last views and published addresses. Undefined before the first update of a term, and after a failed update. */
  #viewTracker: ServiceViewTracker | undefined;
  #views: readonly ServiceView[] = [];
  /** Aborts when leadership is lost. */
  #term = new AbortController();

  constructor({ heartbeats, clock, log, onViews, onHeartbeats }: FleetReconcilerOptions) {
    this.#heartbeats = heartbeats;
    this.#clock = clock;
    this.#log = log;
    this.#onViews = onViews;
    this.#onHeartbeats = onHeartbeats;
    this.#storeReachableSince = clock.monotonic();
  }

  /** Whether any Service still waits for proxies to confirm its ports. */
  get hasPendingService(): boolean {
    return this.#views.some((view) => view.state === 'Pending');
  }

  /** The highest sequence of suspensions that a running proxy applies; 0 without proxies. */
  get cutoffSequence(): number {
    return Math.max(0, ...this.#liveness.alive().map(({ cutoffSequence }) => cutoffSequence));
  }

  /** The nodes whose proxies have sent no heartbeat for a while. The map is the same object until the state of a node changes. */
  get unreachableNodes(): ReadonlyMap<string, NodeUnreachability> {
    return this.#unreachableNodes.states;
  }

  /**
   * Starts the period in which a missing heartbeat does not count. Call this at the start of a term or an epoch, because proxies may then
   * report late.
   */
  startGracePeriod(): void {
    this.#liveness.startGracePeriod(this.#clock.monotonic());
  }

  /**
   * Call this when this controller is connected to the store again. Proxies may reconnect later, so `MAX_HEARTBEAT_WAIT_MS` counts from
   * this call.
   */
  onStoreReconnected(): void {
    this.#storeReachableSince = this.#clock.monotonic();
  }

  /**
   * Call this when leadership is lost. In the next term, the published addresses are read from the status of the Services, because
   * another leader may have changed them.
   */
  reset(): void {
    this.#term.abort();
    this.#term = new AbortController();
    this.#liveness = new ProxyLiveness();
    this.#unreachableNodes = new UnreachableNodes();
    this.#unknownVersionProxies = new UnknownVersionProxies();
    this.#lastListenerErrors = new LastListenerErrors();
    this.#silence = undefined;
    this.#viewTracker = undefined;
    this.#views = [];
  }

  /**
   * Waits until every node that had a proxy before has a live proxy, or until `MAX_HEARTBEAT_WAIT_MS` after the store has become reachable.
   * Call this before the first translation of a term. An unreachable node gets no new allocations, so without this wait all new allocations
   * would go to the node that reports first.
   */
  async waitForProxies({ nodes }: Pick<Snapshot, 'nodes'>, signal: AbortSignal): Promise<void> {
    const { signal: termSignal } = this.#term;
    // Limits the wait if the connection to the store is lost again and again.
    const deadline = this.#clock.monotonic() + 2 * MAX_HEARTBEAT_WAIT_MS;
    for (let isLogged = false; ; isLogged = true) {
      const now = this.#clock.monotonic();
      const [heartbeats, known] = await Promise.all([this.#heartbeats.list(), this.#heartbeats.knownNodes()]);
      if (termSignal.aborted) return;
      this.#liveness.heartbeatsRead(heartbeats, now);
      const heard = this.#heardNodes();
      const silent = trafficNodes(nodes).filter((name) => known.has(name) && !heard.has(name));
      if (silent.length === 0 || now >= Math.min(this.#storeReachableSince + MAX_HEARTBEAT_WAIT_MS, deadline)) {
        this.#updateUnreachableNodes(nodes, { now, known });
        return;
      }
      if (!isLogged)
        this.#log.info({ silent, forMs: MAX_HEARTBEAT_WAIT_MS }, 'waiting for proxies before the first routing table');
      await wait(this.#clock, HEARTBEAT_POLL_MS, AbortSignal.any([termSignal, signal])).catch(() => undefined);
      signal.throwIfAborted();
      if (termSignal.aborted) return;
    }
  }

  async reconcile(input: FleetInput): Promise<void> {
    const { signal: termSignal } = this.#term;
    const now = this.#clock.monotonic();
    const heartbeats = await this.#heartbeats.list().catch(() => undefined);
    // If the term ended while the heartbeats were read, using these heartbeats would undo `reset`.
    if (termSignal.aborted) return;
    if (heartbeats === undefined) this.#liveness.storeUnreachable();
    else {
      this.#liveness.heartbeatsRead(heartbeats, now);
      this.#onHeartbeats(heartbeats);
    }
    this.#logUnknownVersions(this.#liveness.alive());
    this.#updateUnreachableNodes(input.snapshot.nodes, { now });
    this.#views = this.#viewsFor(input, { isSettling: this.#liveness.isSettling });
    this.#onViews(this.#views);
  }

  #logUnknownVersions(heartbeats: readonly Heartbeat[]): void {
    const present = new Set<string>();
    for (const { node, life, version, unreadable } of heartbeats) {
      const key = `${node}/${life}`;
      if (unreadable === undefined) continue;
      present.add(key);
      if (this.#loggedUnknownVersions.has(key)) continue;
      this.#log.warn(
        { node, life, version, reason: unreadable },
        'failed to decode the heartbeat of a proxy of another version; assuming that its published listeners are open',
      );
    }
    this.#loggedUnknownVersions = present;
  }

  #updateUnreachableNodes(nodes: Snapshot['nodes'], at: Pick<HeartbeatRound, 'now' | 'known'>): void {
    if (!this.#liveness.isStoreReachable) {
      this.#unreachableNodes.pause();
      return;
    }
    this.#unreachableNodes.update({ nodes: trafficNodes(nodes), heardNodes: this.#heardNodes(), ...at });
  }

  #heardNodes(): ReadonlySet<string> {
    return new Set(this.#liveness.alive().map(({ node }) => node));
  }

  #silentSince(table: RoutingTable, snapshot: Snapshot): ReadonlyMap<string, number> {
    this.#silence ??= new NodeSilence(silenceInStatus(table, snapshot));
    if (!this.#liveness.isStoreReachable) return this.#silence.silentSince;
    const heartbeats = this.#liveness.alive();
    return this.#silence.update({ nodes: trafficNodes(snapshot.nodes), heartbeats, now: this.#clock.now() });
  }

  #viewsFor(
    { table, suspensions, snapshot, isUnpublished, notices }: FleetInput,
    { isSettling }: { readonly isSettling: boolean },
  ): readonly ServiceView[] {
    const tracker = this.#viewTracker ?? new ServiceViewTracker();
    // If `update` throws, the tracker may be half updated and is not used again.
    this.#viewTracker = undefined;
    const assumed = this.#unknownVersionProxies.withAssumedReports(this.#liveness.alive(), { table, snapshot });
    const views = tracker.update({
      table,
      heartbeats: assumed,
      lastErrors: this.#lastListenerErrors.update(assumed, table),
      silentSince: this.#silentSince(table, snapshot),
      suspensions,
      now: this.#clock.now(),
      previousAddresses: publishedAddressesIn(snapshot),
      reachable: this.#liveness.isStoreReachable,
      unpublished: isUnpublished,
      settling: isSettling,
    });
    this.#viewTracker = tracker;
    return this.#reportedViews.withNotices(views, notices);
  }
}

/**
 * Returns, by node, since when the node has had no live proxy, as far as the status of the Services shows it. A Service has no proxy
 * since the time when its last proxy became silent, so the earliest time of the Services of a node is the node's own time.
 */
function silenceInStatus({ entries }: RoutingTable, { services }: Pick<Snapshot, 'services'>): Map<string, number> {
  const silentSince = new Map<string, number>();
  for (const { uid, noProxySince } of services) {
    const entry = noProxySince === undefined ? undefined : entries.get(serviceId(uid));
    if (noProxySince === undefined || entry?.kind !== 'service') continue;
    for (const node of entry.nodes)
      silentSince.set(node, Math.min(noProxySince, silentSince.get(node) ?? Number.POSITIVE_INFINITY));
  }
  return silentSince;
}

/** Returns the names of the nodes that should have a proxy. */
function trafficNodes(nodes: Snapshot['nodes']): readonly string[] {
  return nodes.filter((node) => isLoadBalancerNode(node) && !isExcludedNode(node)).map(({ name }) => name);
}

/** Returns the addresses in the status of each Service, by UID. Builds the index on the first lookup, because most runs look up nothing. */
function publishedAddressesIn({ services }: Snapshot): FleetState['previousAddresses'] {
  let byUid: ReadonlyMap<string, readonly string[]> | undefined;
  return {
    get(uid) {
      byUid ??= new Map(services.map((service) => [service.uid, service.publishedIPs]));
      return byUid.get(uid);
    },
  };
}
