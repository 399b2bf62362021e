import {
  type Absence,
  type Cutoff,
  type Fleet,
  FleetViews,
  type Heartbeat,
  isExcludedNode,
  isLabelledNode,
  type RoutingTable,
  type ServiceView,
  type Snapshot,
  undecidedViewsFor,
} from '@weir/model';
import { type Clock, type Logger, wait } from '@weir/runtime';
import type { HeartbeatStore } from '@weir/store';
import type { StatusSink, Wanted } from '../status/status-sink.ts';
import { ToldViews } from '../status/views.ts';
import { Absences, type Hearing } from './absences.ts';
import { LastErrors } from './last-errors.ts';
import { Liveness } from './liveness.ts';
import { Strangers } from './strangers.ts';

/** What is decided, and what it was decided from. */
export interface Decided {
  readonly table: RoutingTable;
  /** Those in force now. */
  readonly cutoffs: readonly Cutoff[];
  readonly snapshot: Snapshot;
  /** Tenants that have used up their month, and what to say to them. */
  readonly exhausted: ReadonlyMap<string, string>;
}

export interface FleetKeeperOptions {
  readonly heartbeats: HeartbeatStore;
  readonly sink: StatusSink;
  readonly clock: Clock;
  readonly log: Logger;
  /** Something is to be told that was not before. */
  readonly onNews: () => void;
}

/** Since the store is within reach, every proxy that lives has said so by then: it connects again within 2 s, and beats at once. */
const ALL_HEARD_MS = 3_000;
const LISTEN_AGAIN_MS = 250;

/** Listens to the proxies, and has the Services told: beside each other, since an API server may take its time and a proxy may not. */
export class FleetKeeper {
  readonly #heartbeats: HeartbeatStore;
  readonly #sink: StatusSink;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** `node/life` of those who are there, and of whom it was said that they cannot be understood. */
  #toldStrangers: ReadonlySet<string> = new Set();
  #strangers = new Strangers();
  #lastErrors = new LastErrors();
  #liveness = new Liveness();
  #absences = new Absences();
  /** Since when the store is within reach of everybody, as far as we know. */
  #reachableSince: number;
  readonly #toldViews = new ToldViews();
  /** Remembers the views, and with them what was last published; none at first, and while another leads. */
  #memory: FleetViews | undefined;
  readonly #onNews: () => void;
  /** From what it was last noted what to tell; empty: nothing is, in this lead, or it has to be again. */
  #noted: readonly unknown[] = [];
  /** Something was noted in this lead, so it may be told. */
  #mayTell = false;
  #views: readonly ServiceView[] = [];
  #undecided: { readonly from: Snapshot; readonly views: readonly ServiceView[] } | undefined;
  /** Aborts when the lead is lost. */
  #lead = new AbortController();

  constructor({ heartbeats, sink, clock, log, onNews }: FleetKeeperOptions) {
    this.#onNews = onNews;
    this.#heartbeats = heartbeats;
    this.#sink = sink;
    this.#clock = clock;
    this.#log = log;
    this.#reachableSince = clock.monotonic();
  }

  /** Somebody waits for the proxies to confirm its ports. */
  get isSomebodyWaiting(): boolean {
    return this.#views.some((view) => view.state === 'Pending');
  }

  /** Nodes whose proxy has not answered for a while; the same map until that changes. */
  get absent(): ReadonlyMap<string, Absence> {
    return this.#absences.absent;
  }

  /** New leader, new epoch: the proxies may need a while to report. */
  grace(): void {
    this.#liveness.grace(this.#clock.monotonic());
  }

  /** The store is within reach again, perhaps of the others somewhat later. */
  reconnected(): void {
    this.#reachableSince = this.#clock.monotonic();
  }

  /** Another leads, listens and publishes: what it published will be read from the Services. */
  forget(): void {
    this.#lead.abort();
    this.#lead = new AbortController();
    this.#liveness = new Liveness();
    this.#absences = new Absences();
    this.#strangers = new Strangers();
    this.#lastErrors = new LastErrors();
    this.#memory = undefined;
    this.#views = [];
    this.#undecided = undefined;
    this.#noted = [];
    this.#mayTell = false;
  }

  /**
   * Before the first decision of a lead: who is away gets nothing new by it. Whoever comes back together with the store has a moment
   * to be heard, else all that is new would be put on whoever is first.
   */
  async listen({ nodes }: Pick<Snapshot, 'nodes'>, signal: AbortSignal): Promise<void> {
    const { signal: lead } = this.#lead;
    // A store that is lost again and again may not put off the decision for ever.
    const latest = this.#clock.monotonic() + 2 * ALL_HEARD_MS;
    for (let isTold = false; ; isTold = true) {
      const now = this.#clock.monotonic();
      const [heartbeats, known] = await Promise.all([this.#heartbeats.list(), this.#heartbeats.nodes()]);
      if (lead.aborted) return;
      this.#liveness.answered(heartbeats, now);
      const heard = this.#heardNodes();
      const silent = carryingNodes(nodes).filter((name) => known.has(name) && !heard.has(name));
      if (silent.length === 0 || now >= Math.min(this.#reachableSince + ALL_HEARD_MS, latest)) {
        this.#noteAbsences(nodes, { now, known });
        return;
      }
      if (!isTold) this.#log.info({ silent, forMs: ALL_HEARD_MS }, 'waiting for proxies before the first decision');
      await wait(this.#clock, LISTEN_AGAIN_MS, AbortSignal.any([lead, signal])).catch(() => undefined);
      signal.throwIfAborted();
      if (lead.aborted) return;
    }
  }

  /** Listens, and notes what is to be told. */
  async keep(decided: Decided): Promise<void> {
    const { signal: lead } = this.#lead;
    const now = this.#clock.monotonic();
    const heartbeats = await this.#heartbeats.list().catch(() => undefined);
    // What was forgotten meanwhile stays so: what is remembered from here on would be of the lead that is over.
    if (lead.aborted) return;
    if (heartbeats === undefined) this.#liveness.silent();
    else this.#liveness.answered(heartbeats, now);
    this.#tellStrangers(this.#liveness.alive());
    this.#noteAbsences(decided.snapshot.nodes, { now });
    this.#views = this.#viewsFor(decided, this.#liveness.isInGrace(now));
    this.#note({ kind: 'decided', views: this.#views });
  }

  /** The store has not been reached since this process leads: who is new shall read at least that. */
  keepUndecided(snapshot: Snapshot): void {
    if (this.#undecided?.from !== snapshot) this.#undecided = { from: snapshot, views: undecidedViewsFor(snapshot) };
    this.#note({ kind: 'undecided', views: this.#undecided.views });
  }

  /** Tells the Services what was noted last, until nothing is left to tell. It ends with the lead, which is no failure. */
  async tell(signal: AbortSignal): Promise<void> {
    const { signal: lead } = this.#lead;
    if (!this.#mayTell) return;
    try {
      const outcome = await this.#sink.write(AbortSignal.any([signal, lead]));
      if (outcome === 'again' && !lead.aborted) this.#noted = [];
    } catch (error) {
      if (!lead.aborted || signal.aborted) throw error;
    }
  }

  #tellStrangers(heartbeats: readonly Heartbeat[]): void {
    const present = new Set<string>();
    for (const { node, life, version, unreadable } of heartbeats) {
      const key = `${node}/${life}`;
      if (unreadable === undefined) continue;
      present.add(key);
      if (this.#toldStrangers.has(key)) continue;
      this.#log.warn({ node, life, version, reason: unreadable }, 'a proxy of another version is not understood');
    }
    this.#toldStrangers = present;
  }

  #note(wanted: Wanted): void {
    // The views are the same list until one is another.
    const facts = [wanted.kind, wanted.views, this.#sink.observed];
    if (facts.every((fact, index) => fact === this.#noted[index])) return;
    this.#noted = facts;
    this.#mayTell = true;
    this.#sink.want(wanted);
    this.#onNews();
  }

  #noteAbsences(nodes: Snapshot['nodes'], at: Pick<Hearing, 'now' | 'known'>): void {
    if (!this.#liveness.isReachable) {
      this.#absences.interrupted();
      return;
    }
    this.#absences.listened({ nodes: carryingNodes(nodes), heard: this.#heardNodes(), ...at });
  }

  #heardNodes(): ReadonlySet<string> {
    return new Set(this.#liveness.alive().map(({ node }) => node));
  }

  #viewsFor({ table, cutoffs, snapshot, exhausted }: Decided, settling: boolean): readonly ServiceView[] {
    const memory = this.#memory ?? new FleetViews();
    // Whatever it throws on: it may have remembered half of it.
    this.#memory = undefined;
    const { isReachable: reachable } = this.#liveness;
    const previous = publishedIn(snapshot);
    const heard = this.#strangers.heard(this.#liveness.alive(), { table, snapshot });
    const heartbeats = this.#lastErrors.heard(heard, table);
    const views = memory.next({ table, heartbeats, cutoffs, now: this.#clock.now(), previous, reachable, settling });
    this.#memory = memory;
    return this.#toldViews.of(views, exhausted);
  }
}

/** Names of those that should have a proxy. */
function carryingNodes(nodes: Snapshot['nodes']): readonly string[] {
  return nodes.filter((node) => isLabelledNode(node) && !isExcludedNode(node)).map(({ name }) => name);
}

/** What the Services say in their status; read through only when somebody asks. */
function publishedIn({ services }: Snapshot): Fleet['previous'] {
  let byUid: ReadonlyMap<string, readonly string[]> | undefined;
  return {
    get(uid) {
      byUid ??= new Map(services.map((service) => [service.uid, service.publishedIPs]));
      return byUid.get(uid);
    },
  };
}
