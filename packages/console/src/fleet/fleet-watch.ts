import {
  type Cutoff,
  type Fleet,
  FleetViews,
  type Heartbeat,
  type Position,
  type RoutingTable,
  type ServiceView,
} from '@weir/model';
import { type Clock, errorMessage, type Logger, wait } from '@weir/runtime';
import { followCutoffs, followTable, type Store } from '@weir/store';
import { ApiError } from '../api/api-error.ts';

export interface FleetWatchOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** The table, the cut-offs or what the proxies say have changed. */
  readonly onChange?: () => void;
}

const HEARTBEATS_EVERY_MS = 1_000;
/** Somebody waits for an address, and whoever asks for it wants to see it come. */
const WHILE_WAITING_MS = 200;
/** The memory knows what it showed last, and before that nobody was shown anything. */
const NOTHING_BEFORE: Fleet['previous'] = new Map();

/** What the store says of the fleet, kept up to date: table, cut-offs and heartbeats. */
export class FleetWatch {
  readonly #options: FleetWatchOptions;
  readonly #closing = new AbortController();
  readonly #parts: readonly Promise<void>[];
  #table: RoutingTable | undefined;
  #position: Position | null = null;
  #unreadable = 0;
  #cutoffs: readonly Cutoff[] = [];
  #heartbeats: readonly Heartbeat[] = [];
  #heard = false;
  /** Remembers the addresses of the last view: the last one is never withdrawn. */
  readonly #memory = new FleetViews();
  #views: readonly ServiceView[] = [];
  /** By UID, of the list of views from which it was made. */
  #addresses:
    | { readonly of: readonly ServiceView[]; readonly byUid: ReadonlyMap<string, readonly string[]> }
    | undefined;
  #reported = '';
  #isWaiting = false;
  #tableAway = '';
  readonly #ready: PromiseWithResolvers<void> = Promise.withResolvers<void>();

  constructor(options: FleetWatchOptions) {
    this.#options = options;
    this.#parts = [this.#followTable(), this.#followCutoffs(), this.#pollHeartbeats()];
  }

  /** Rejects when a part of the watch failed for good: a broken invariant. */
  get failed(): Promise<unknown> {
    return Promise.all(this.#parts).then(() => new Promise(() => {}));
  }

  /** Resolves when a table was read, and what the proxies say now. */
  async refresh(): Promise<void> {
    await this.#ready.promise;
    await this.#hear();
  }

  get isReady(): boolean {
    return this.#table !== undefined && this.#heard;
  }

  /** Whether the store told last what the proxies say. */
  get isReachable(): boolean {
    return this.#heard;
  }

  /** Undefined while no whole table was ever read. */
  get table(): RoutingTable | undefined {
    return this.#table;
  }

  /** As far as the store has told. */
  get cutoffs(): readonly Cutoff[] {
    return this.#cutoffs;
  }

  get position(): Position | null {
    return this.#position;
  }

  /** Entries that a newer version wrote. */
  get unreadable(): number {
    return this.#unreadable;
  }

  /** The fleet now, as far as the store has told; `ApiError` StoreAway while no whole table was ever read. */
  fleet(): Fleet {
    if (this.#table === undefined) {
      const why = this.#tableAway === '' ? '' : ` (${this.#tableAway})`;
      throw new ApiError(
        'StoreAway',
        `no routing table has been read yet${why}; is a controller running, and does the store answer?`,
      );
    }
    return {
      table: this.#table,
      heartbeats: this.#heartbeats,
      cutoffs: this.#cutoffs,
      now: this.#options.clock.now(),
      previous: { get: (uid) => this.#addressesOf(uid) },
      reachable: this.#heard,
    };
  }

  /**
   * What is shown of each Service now, sorted by namespace and name: the same objects as before where nothing is another. `ApiError` as of
   * `fleet`.
   */
  views(): readonly ServiceView[] {
    const views = this.#memory.next({ ...this.fleet(), previous: NOTHING_BEFORE });
    if (views !== this.#views) this.#isWaiting = views.some((view) => view.state === 'Pending');
    this.#views = views;
    return views;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#parts);
  }

  async #followTable(): Promise<void> {
    const { store, clock, log } = this.#options;
    const take = (table: RoutingTable, position: Position): void => {
      this.#table = table;
      this.#position = position;
      this.#changed();
    };
    await followTable(store.table, {
      signal: this.#closing.signal,
      clock,
      onTable: take,
      onChanges: (_changes, table, { position }) => take(table, position),
      onUnreadable: (ids) => {
        this.#unreadable = ids.length;
        log.warn({ entries: ids.length }, 'the table holds entries of a newer version');
      },
      onAway: (error) => {
        this.#tableAway = errorMessage(error);
        log.warn({ reason: errorMessage(error) }, 'the routing table cannot be followed; the last one is shown');
      },
      onBack: () => log.info('the routing table is followed again'),
    });
  }

  async #followCutoffs(): Promise<void> {
    const { store, clock, log } = this.#options;
    await followCutoffs(store.cutoffs, {
      signal: this.#closing.signal,
      clock,
      onCutoffs: (cutoffs) => {
        this.#cutoffs = cutoffs;
        this.#changed();
      },
      onAway: (error) =>
        log.warn({ reason: errorMessage(error) }, 'the cut-offs cannot be followed; the last ones are shown'),
    });
  }

  async #pollHeartbeats(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#hear();
      await wait(clock, this.#isWaiting ? WHILE_WAITING_MS : HEARTBEATS_EVERY_MS, signal).catch(() => {});
    }
  }

  async #hear(): Promise<void> {
    const { store, log } = this.#options;
    try {
      this.#heartbeats = await store.heartbeats.list();
      this.#heard = true;
    } catch (error) {
      if (this.#heard)
        log.warn({ reason: errorMessage(error) }, 'the heartbeats cannot be read; the last ones are shown');
      this.#heard = false;
    }
    const reported = JSON.stringify([this.#heard, this.#heartbeats.map(whatMattersOf)]);
    const isNews = reported !== this.#reported;
    this.#reported = reported;
    if (isNews) this.#changed();
  }

  #changed(): void {
    this.#rememberAddresses();
    if (this.isReady) this.#ready.resolve();
    this.#options.onChange?.();
  }

  #rememberAddresses(): void {
    if (this.#table === undefined || !this.#heard) return;
    this.views();
  }

  /** Read through only when somebody asks. */
  #addressesOf(uid: string): readonly string[] | undefined {
    if (this.#addresses?.of !== this.#views) {
      const byUid = new Map(this.#views.map((view) => [view.uid, view.addresses]));
      this.#addresses = { of: this.#views, byUid };
    }
    return this.#addresses?.byUid.get(uid);
  }
}

/** Whether addresses may have changed, at the cost of a few numbers per proxy. */
function whatMattersOf(heartbeat: Heartbeat): unknown {
  const { node, life, draining, applied, listeners } = heartbeat;
  const errors = listeners.map((report) => report.error).filter((error) => error !== null);
  return [node, life, draining, applied?.id, listeners.filter((report) => report.bound).length, errors];
}
