import {
  type FleetState,
  type Heartbeat,
  type RoutingTable,
  type ServiceView,
  ServiceViewTracker,
  type Suspension,
  type TablePosition,
} from '@weir/model';
import { type Clock, errorMessage, type Logger, wait } from '@weir/runtime';
import { followSuspensions, followTable, type Store } from '@weir/store';
import { ApiError } from '../api/api-error.ts';

export interface FleetWatchOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** The table, the cut-offs or what the proxies say have changed. */
  readonly onChange?: () => void;
}

const HEARTBEAT_POLL_INTERVAL_MS = 1_000;
/** Somebody waits for an address, and whoever asks for it wants to see it come. */
const PENDING_POLL_INTERVAL_MS = 200;
/** The memory knows what it showed last, and before that nobody was shown anything. */
const NO_PREVIOUS_ADDRESSES: FleetState['previousAddresses'] = new Map();

/** What the store says of the fleet, kept up to date: table, cut-offs and heartbeats. */
export class FleetWatch {
  readonly #options: FleetWatchOptions;
  readonly #closing = new AbortController();
  readonly #loops: readonly Promise<void>[];
  #table: RoutingTable | undefined;
  #position: TablePosition | null = null;
  #unreadableEntries = 0;
  #cutoffs: readonly Suspension[] = [];
  #heartbeats: readonly Heartbeat[] = [];
  #isReachable = false;
  /** Remembers the addresses of the last view: the last one is never withdrawn. */
  readonly #fleetViews = new ServiceViewTracker();
  #views: readonly ServiceView[] = [];
  /** By UID, of the list of views from which it was made. */
  #addressIndex:
    | { readonly of: readonly ServiceView[]; readonly byUid: ReadonlyMap<string, readonly string[]> }
    | undefined;
  #heartbeatsDigest = '';
  #hasPendingService = false;
  #tableError = '';
  readonly #ready: PromiseWithResolvers<void> = Promise.withResolvers<void>();

  constructor(options: FleetWatchOptions) {
    this.#options = options;
    this.#loops = [this.#followTable(), this.#followCutoffs(), this.#pollHeartbeats()];
  }

  /** Rejects when a part of the watch failed for good: a broken invariant. */
  get failed(): Promise<unknown> {
    return Promise.all(this.#loops).then(() => new Promise(() => {}));
  }

  /** Resolves when a table was read, and what the proxies say now. */
  async refresh(): Promise<void> {
    await this.#ready.promise;
    await this.#readHeartbeats();
  }

  get isReady(): boolean {
    return this.#table !== undefined && this.#isReachable;
  }

  /** Whether the store told last what the proxies say. */
  get isReachable(): boolean {
    return this.#isReachable;
  }

  /** Undefined while no whole table was ever read. */
  get table(): RoutingTable | undefined {
    return this.#table;
  }

  /** As far as the store has told. */
  get cutoffs(): readonly Suspension[] {
    return this.#cutoffs;
  }

  get position(): TablePosition | null {
    return this.#position;
  }

  /** Entries that a newer version wrote. */
  get unreadableEntries(): number {
    return this.#unreadableEntries;
  }

  /** The fleet now, as far as the store has told; `ApiError` StoreAway while no whole table was ever read. */
  fleet(): FleetState {
    if (this.#table === undefined) {
      const why = this.#tableError === '' ? '' : ` (${this.#tableError})`;
      throw new ApiError(
        'StoreAway',
        `no routing table has been read yet${why}; is a controller running, and does the store answer?`,
      );
    }
    return {
      table: this.#table,
      heartbeats: this.#heartbeats,
      suspensions: this.#cutoffs,
      now: this.#options.clock.now(),
      previousAddresses: { get: (uid) => this.#addressesOf(uid) },
      reachable: this.#isReachable,
    };
  }

  /**
   * What is shown of each Service now, sorted by namespace and name: the same objects as before where nothing is another. `ApiError` as of
   * `fleet`.
   */
  views(): readonly ServiceView[] {
    const views = this.#fleetViews.update({ ...this.fleet(), previousAddresses: NO_PREVIOUS_ADDRESSES });
    if (views !== this.#views) this.#hasPendingService = views.some((view) => view.state === 'Pending');
    this.#views = views;
    return views;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#loops);
  }

  async #followTable(): Promise<void> {
    const { store, clock, log } = this.#options;
    const take = (table: RoutingTable, position: TablePosition): void => {
      this.#table = table;
      this.#position = position;
      this.#notifyChange();
    };
    await followTable(store.table, {
      signal: this.#closing.signal,
      clock,
      onTable: take,
      onChanges: (_changes, table, { position }) => take(table, position),
      onUnreadable: (ids) => {
        this.#unreadableEntries = ids.length;
        log.warn({ entries: ids.length }, 'the table holds entries of a newer version');
      },
      onAway: (error) => {
        this.#tableError = errorMessage(error);
        log.warn({ reason: errorMessage(error) }, 'the routing table cannot be followed; the last one is shown');
      },
      onBack: () => log.info('the routing table is followed again'),
    });
  }

  async #followCutoffs(): Promise<void> {
    const { store, clock, log } = this.#options;
    await followSuspensions(store.suspensions, {
      signal: this.#closing.signal,
      clock,
      onSuspensions: (cutoffs) => {
        this.#cutoffs = cutoffs;
        this.#notifyChange();
      },
      onAway: (error) =>
        log.warn({ reason: errorMessage(error) }, 'the cut-offs cannot be followed; the last ones are shown'),
    });
  }

  async #pollHeartbeats(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#readHeartbeats();
      await wait(clock, this.#hasPendingService ? PENDING_POLL_INTERVAL_MS : HEARTBEAT_POLL_INTERVAL_MS, signal).catch(
        () => {},
      );
    }
  }

  async #readHeartbeats(): Promise<void> {
    const { store, log } = this.#options;
    try {
      this.#heartbeats = await store.heartbeats.list();
      this.#isReachable = true;
    } catch (error) {
      if (this.#isReachable)
        log.warn({ reason: errorMessage(error) }, 'the heartbeats cannot be read; the last ones are shown');
      this.#isReachable = false;
    }
    const reported = JSON.stringify([this.#isReachable, this.#heartbeats.map(heartbeatDigest)]);
    const isNews = reported !== this.#heartbeatsDigest;
    this.#heartbeatsDigest = reported;
    if (isNews) this.#notifyChange();
  }

  #notifyChange(): void {
    this.#refreshViews();
    if (this.isReady) this.#ready.resolve();
    this.#options.onChange?.();
  }

  #refreshViews(): void {
    if (this.#table === undefined || !this.#isReachable) return;
    this.views();
  }

  /** Read through only when somebody asks. */
  #addressesOf(uid: string): readonly string[] | undefined {
    if (this.#addressIndex?.of !== this.#views) {
      const byUid = new Map(this.#views.map((view) => [view.uid, view.addresses]));
      this.#addressIndex = { of: this.#views, byUid };
    }
    return this.#addressIndex?.byUid.get(uid);
  }
}

/** Whether addresses may have changed, at the cost of a few numbers per proxy. */
function heartbeatDigest(heartbeat: Heartbeat): unknown {
  const { node, life, draining, applied, listeners } = heartbeat;
  const errors = listeners.map((report) => report.error).filter((error) => error !== null);
  return [node, life, draining, applied?.id, listeners.filter((report) => report.bound).length, errors];
}
