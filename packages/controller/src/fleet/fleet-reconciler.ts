import {
  type FleetState,
  type Heartbeat,
  isExcludedNode,
  isLoadBalancerNode,
  type NodeUnreachability,
  type RoutingTable,
  type ServiceView,
  ServiceViewTracker,
  type Snapshot,
  type Suspension,
  storeUnreachableViewsFor,
} from '@weir/model';
import { type Clock, type Logger, wait } from '@weir/runtime';
import type { HeartbeatStore } from '@weir/store';
import { ReportedViews } from '../status/service-views.ts';
import type { DesiredViews, StatusSink } from '../status/status-sink.ts';
import { LastListenerErrors, UnknownVersionProxies } from './assumed-reports.ts';
import { type HeartbeatRound, ProxyLiveness, UnreachableNodes } from './proxy-liveness.ts';

/** What is decided, and what it was decided from. */
export interface FleetInput {
  readonly table: RoutingTable;
  /** Those in force now. */
  readonly suspensions: readonly Suspension[];
  readonly snapshot: Snapshot;
  /** Tenants that have used up their month, and what to say to them. */
  readonly exhausted: ReadonlyMap<string, string>;
}

export interface FleetReconcilerOptions {
  readonly heartbeats: HeartbeatStore;
  readonly sink: StatusSink;
  readonly clock: Clock;
  readonly log: Logger;
  /** Something is to be told that was not before. */
  readonly onStatusChange: () => void;
}

/** Since the store is within reach, every proxy that lives has said so by then: it connects again within 2 s, and beats at once. */
const MAX_HEARTBEAT_WAIT_MS = 3_000;
const HEARTBEAT_POLL_MS = 250;

/** Listens to the proxies, and has the Services told: beside each other, since an API server may take its time and a proxy may not. */
export class FleetReconciler {
  readonly #heartbeats: HeartbeatStore;
  readonly #sink: StatusSink;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** `node/life` of those who are there, and of whom it was said that they cannot be understood. */
  #loggedUnknownVersions: ReadonlySet<string> = new Set();
  #unknownVersionProxies = new UnknownVersionProxies();
  #lastListenerErrors = new LastListenerErrors();
  #liveness = new ProxyLiveness();
  #unreachableNodes = new UnreachableNodes();
  /** Since when the store is within reach of everybody, as far as we know. */
  #storeReachableSince: number;
  readonly #reportedViews = new ReportedViews();
  /** Remembers the views, and with them what was last published; none at first, and while another leads. */
  #fleetViews: ServiceViewTracker | undefined;
  readonly #onStatusChange: () => void;
  /** From what it was last noted what to tell; empty: nothing is, in this lead, or it has to be again. */
  #desiredFrom: readonly unknown[] = [];
  /** Something was noted in this lead, so it may be told. */
  #hasDesiredStatus = false;
  #views: readonly ServiceView[] = [];
  #undecidedViews: { readonly from: Snapshot; readonly views: readonly ServiceView[] } | undefined;
  /** Aborts when the lead is lost. */
  #term = new AbortController();

  constructor({ heartbeats, sink, clock, log, onStatusChange }: FleetReconcilerOptions) {
    this.#onStatusChange = onStatusChange;
    this.#heartbeats = heartbeats;
    this.#sink = sink;
    this.#clock = clock;
    this.#log = log;
    this.#storeReachableSince = clock.monotonic();
  }

  /** Somebody waits for the proxies to confirm its ports. */
  get hasPendingService(): boolean {
    return this.#views.some((view) => view.state === 'Pending');
  }

  /** Nodes whose proxy has not answered for a while; the same map until that changes. */
  get unreachableNodes(): ReadonlyMap<string, NodeUnreachability> {
    return this.#unreachableNodes.states;
  }

  /** New leader, new epoch: the proxies may need a while to report. */
  startGracePeriod(): void {
    this.#liveness.startGracePeriod(this.#clock.monotonic());
  }

  /** The store is within reach again, perhaps of the others somewhat later. */
  storeReconnected(): void {
    this.#storeReachableSince = this.#clock.monotonic();
  }

  /** Another leads, listens and publishes: what it published will be read from the Services. */
  reset(): void {
    this.#term.abort();
    this.#term = new AbortController();
    this.#liveness = new ProxyLiveness();
    this.#unreachableNodes = new UnreachableNodes();
    this.#unknownVersionProxies = new UnknownVersionProxies();
    this.#lastListenerErrors = new LastListenerErrors();
    this.#fleetViews = undefined;
    this.#views = [];
    this.#undecidedViews = undefined;
    this.#desiredFrom = [];
    this.#hasDesiredStatus = false;
  }

  /**
   * Before the first decision of a lead: who is away gets nothing new by it. Whoever comes back together with the store has a moment
   * to be heard, else all that is new would be put on whoever is first.
   */
  async waitForProxies({ nodes }: Pick<Snapshot, 'nodes'>, signal: AbortSignal): Promise<void> {
    const { signal: lead } = this.#term;
    // A store that is lost again and again may not put off the decision for ever.
    const latest = this.#clock.monotonic() + 2 * MAX_HEARTBEAT_WAIT_MS;
    for (let isTold = false; ; isTold = true) {
      const now = this.#clock.monotonic();
      const [heartbeats, known] = await Promise.all([this.#heartbeats.list(), this.#heartbeats.knownNodes()]);
      if (lead.aborted) return;
      this.#liveness.heartbeatsRead(heartbeats, now);
      const heard = this.#heardNodes();
      const silent = trafficNodes(nodes).filter((name) => known.has(name) && !heard.has(name));
      if (silent.length === 0 || now >= Math.min(this.#storeReachableSince + MAX_HEARTBEAT_WAIT_MS, latest)) {
        this.#updateUnreachableNodes(nodes, { now, known });
        return;
      }
      if (!isTold)
        this.#log.info({ silent, forMs: MAX_HEARTBEAT_WAIT_MS }, 'waiting for proxies before the first decision');
      await wait(this.#clock, HEARTBEAT_POLL_MS, AbortSignal.any([lead, signal])).catch(() => undefined);
      signal.throwIfAborted();
      if (lead.aborted) return;
    }
  }

  /** Listens, and notes what is to be told. */
  async reconcile(decided: FleetInput): Promise<void> {
    const { signal: lead } = this.#term;
    const now = this.#clock.monotonic();
    const heartbeats = await this.#heartbeats.list().catch(() => undefined);
    // What was forgotten meanwhile stays so: what is remembered from here on would be of the lead that is over.
    if (lead.aborted) return;
    if (heartbeats === undefined) this.#liveness.storeUnreachable();
    else this.#liveness.heartbeatsRead(heartbeats, now);
    this.#logUnknownVersions(this.#liveness.alive());
    this.#updateUnreachableNodes(decided.snapshot.nodes, { now });
    this.#views = this.#viewsFor(decided, this.#liveness.isInGracePeriod(now));
    this.#setDesiredStatus({ kind: 'decided', views: this.#views });
  }

  /** The store has not been reached since this process leads: who is new shall read at least that. */
  reconcileUndecided(snapshot: Snapshot): void {
    if (this.#undecidedViews?.from !== snapshot)
      this.#undecidedViews = { from: snapshot, views: storeUnreachableViewsFor(snapshot) };
    this.#setDesiredStatus({ kind: 'undecided', views: this.#undecidedViews.views });
  }

  /** Tells the Services what was noted last, until nothing is left to tell. It ends with the lead, which is no failure. */
  async writeStatus(signal: AbortSignal): Promise<void> {
    const { signal: lead } = this.#term;
    if (!this.#hasDesiredStatus) return;
    try {
      const outcome = await this.#sink.write(AbortSignal.any([signal, lead]));
      if (outcome === 'again' && !lead.aborted) this.#desiredFrom = [];
    } catch (error) {
      if (!lead.aborted || signal.aborted) throw error;
    }
  }

  #logUnknownVersions(heartbeats: readonly Heartbeat[]): void {
    const present = new Set<string>();
    for (const { node, life, version, unreadable } of heartbeats) {
      const key = `${node}/${life}`;
      if (unreadable === undefined) continue;
      present.add(key);
      if (this.#loggedUnknownVersions.has(key)) continue;
      this.#log.warn({ node, life, version, reason: unreadable }, 'a proxy of another version is not understood');
    }
    this.#loggedUnknownVersions = present;
  }

  #setDesiredStatus(wanted: DesiredViews): void {
    // The views are the same list until one is another.
    const facts = [wanted.kind, wanted.views, this.#sink.observedRevision];
    if (facts.every((fact, index) => fact === this.#desiredFrom[index])) return;
    this.#desiredFrom = facts;
    this.#hasDesiredStatus = true;
    this.#sink.setDesired(wanted);
    this.#onStatusChange();
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

  #viewsFor({ table, suspensions, snapshot, exhausted }: FleetInput, settling: boolean): readonly ServiceView[] {
    const memory = this.#fleetViews ?? new ServiceViewTracker();
    // Whatever it throws on: it may have remembered half of it.
    this.#fleetViews = undefined;
    const { isStoreReachable: reachable } = this.#liveness;
    const previousAddresses = publishedAddressesIn(snapshot);
    const heard = this.#unknownVersionProxies.withAssumedReports(this.#liveness.alive(), { table, snapshot });
    const heartbeats = this.#lastListenerErrors.withLastErrors(heard, table);
    const views = memory.update({
      table,
      heartbeats,
      suspensions,
      now: this.#clock.now(),
      previousAddresses,
      reachable,
      settling,
    });
    this.#fleetViews = memory;
    return this.#reportedViews.withExhaustedMessages(views, exhausted);
  }
}

/** Names of those that should have a proxy. */
function trafficNodes(nodes: Snapshot['nodes']): readonly string[] {
  return nodes.filter((node) => isLoadBalancerNode(node) && !isExcludedNode(node)).map(({ name }) => name);
}

/** What the Services say in their status; read through only when somebody asks. */
function publishedAddressesIn({ services }: Snapshot): FleetState['previousAddresses'] {
  let byUid: ReadonlyMap<string, readonly string[]> | undefined;
  return {
    get(uid) {
      byUid ??= new Map(services.map((service) => [service.uid, service.publishedIPs]));
      return byUid.get(uid);
    },
  };
}
