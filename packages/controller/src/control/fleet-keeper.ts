import { isDeepStrictEqual } from 'node:util';
import {
  type Cutoff,
  type Heartbeat,
  type RoutingTable,
  type ServiceView,
  type Snapshot,
  serviceViewsFor,
} from '@weir/model';
import type { Clock } from '@weir/runtime';
import type { HeartbeatStore } from '@weir/store';
import type { StatusSink } from '../status/status-sink.ts';
import { withExhausted } from '../status/views.ts';
import { Liveness } from './liveness.ts';

/** What lasts is told again from time to time, whatever happens or not. */
const LOOK_AGAIN_MS = 60_000;

/** What is decided, and what it was decided from. */
export interface Decided {
  readonly table: RoutingTable;
  /** Those in force now. */
  readonly cutoffs: readonly Cutoff[];
  readonly snapshot: Snapshot;
  /** Tenants that have used up their month, and what to say to them. */
  readonly exhausted: ReadonlyMap<string, string>;
}

/** Listens to the proxies, and has the Services told. */
export class FleetKeeper {
  readonly #heartbeats: HeartbeatStore;
  readonly #sink: StatusSink;
  readonly #clock: Clock;
  readonly #liveness = new Liveness();
  /** By Service UID: what was last published; at first what its status says. */
  readonly #previous = new Map<string, readonly string[]>();
  #told: readonly unknown[] = [];
  #views: readonly ServiceView[] = [];

  constructor({ heartbeats, sink, clock }: { heartbeats: HeartbeatStore; sink: StatusSink; clock: Clock }) {
    this.#heartbeats = heartbeats;
    this.#sink = sink;
    this.#clock = clock;
  }

  /** Somebody waits for the proxies to confirm its ports. */
  get isSomebodyWaiting(): boolean {
    return this.#views.some((view) => view.state === 'Pending');
  }

  /** New leader, new epoch: the proxies may need a while to report. */
  grace(): void {
    this.#liveness.grace(this.#clock.monotonic());
  }

  async keep(decided: Decided, signal: AbortSignal): Promise<void> {
    const now = this.#clock.monotonic();
    const heartbeats = await this.#heartbeats.list().catch(() => undefined);
    if (heartbeats === undefined) this.#liveness.silent();
    else this.#liveness.answered(heartbeats, now);
    const settling = this.#liveness.isInGrace(now);
    const alive = this.#liveness.alive();
    const reported = [decided.cutoffs, decided.exhausted, said(alive)];
    const minute = Math.floor(now / LOOK_AGAIN_MS);
    const reachable = this.#liveness.isReachable;
    const facts = [decided.table, decided.snapshot, settling, reachable, this.#sink.observed, minute, reported];
    if (isSame(facts, this.#told)) return;
    this.#views = this.#viewsFor(decided, alive, settling);
    this.#told = [];
    if ((await this.#sink.write(this.#views, signal)) === 'done') this.#told = facts;
  }

  #viewsFor({ table, cutoffs, snapshot, exhausted }: Decided, heartbeats: readonly Heartbeat[], settling: boolean) {
    for (const { uid, publishedIPs } of snapshot.services) {
      if (!this.#previous.has(uid)) this.#previous.set(uid, publishedIPs);
    }
    const reachable = this.#liveness.isReachable;
    const fleet = { table, heartbeats, cutoffs, now: this.#clock.now(), previous: this.#previous, reachable, settling };
    const views = serviceViewsFor(fleet).map((view) => withExhausted(view, exhausted));
    this.#previous.clear();
    for (const { uid, addresses } of views) this.#previous.set(uid, addresses);
    return views;
  }
}

/** Of a heartbeat only what a view is made of: the rest changes every second. */
function said(heartbeats: readonly Heartbeat[]): unknown {
  return heartbeats.map(({ node, life, draining, listeners }) => ({ node, life, draining, listeners }));
}

/** Tables and snapshots are the same object until something changes; what the proxies say is compared by content. */
function isSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  return a.every((each, index) => each === b[index] || (index === a.length - 1 && isDeepStrictEqual(each, b[index])));
}
