import { isDeepStrictEqual } from 'node:util';
import {
  EMPTY_TABLE,
  entriesOf,
  type FleetState,
  type Heartbeat,
  monthOf,
  NO_NOTICES,
  NodeSilence,
  ReportedViews,
  type RoutingTable,
  type ServiceView,
  ServiceViewTracker,
  type Suspension,
  type TablePosition,
  trafficLevels,
  trafficMessages,
  type UsageNotices,
  usageNoticesFor,
  withThrottleNotices,
} from '@weir/model';
import { type Clock, errorMessage, type Logger, wait } from '@weir/runtime';
import { followSuspensions, followTable, RefusalWatch, type Store } from '@weir/store';
import { ApiError } from '../api/api-error.ts';

export interface FleetWatchOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called after the table, the Suspensions or the heartbeats changed. */
  readonly onChange?: () => void;
}

const HEARTBEAT_POLL_INTERVAL_MS = 1_000;
/**
 * Time between two reads of the heartbeats while a Service is Pending. The time is short, because users wait for the address of the
 * Service.
 */
const PENDING_POLL_INTERVAL_MS = 200;
/** Time between two reads of the ledger. The month is read only if a tenant has a limit `trafficPerMonth`, a minute only once. */
const USAGE_POLL_INTERVAL_MS = 5_000;
/** Empty, because `ServiceViewTracker` keeps the previous addresses itself. */
const NO_PREVIOUS_ADDRESSES: FleetState['previousAddresses'] = new Map();

/** Follows the table, the Suspensions and the heartbeats of a fleet in the store. */
export class FleetWatch {
  readonly #options: FleetWatchOptions;
  readonly #closing = new AbortController();
  readonly #loops: readonly Promise<void>[];
  #table: RoutingTable | undefined;
  #position: TablePosition | null = null;
  #unreadableEntries = 0;
  #suspensions: readonly Suspension[] = [];
  #heartbeats: readonly Heartbeat[] = [];
  #isReachable = false;
  /** Remembers the addresses of each Service, because a Service keeps its last addresses as long as it has no new addresses. */
  readonly #viewTracker = new ServiceViewTracker();
  readonly #reportedViews = new ReportedViews();
  readonly #refusals: RefusalWatch;
  #notices = NO_NOTICES;
  readonly #silence = new NodeSilence();
  #views: readonly ServiceView[] = [];
  /** The addresses by Service UID, and the views from which this index was built. */
  #addressIndex:
    | { readonly views: readonly ServiceView[]; readonly byUid: ReadonlyMap<string, readonly string[]> }
    | undefined;
  #heartbeatsDigest = '';
  #hasPendingService = false;
  #tableError = '';
  readonly #ready: PromiseWithResolvers<void> = Promise.withResolvers<void>();

  constructor(options: FleetWatchOptions) {
    this.#options = options;
    this.#refusals = new RefusalWatch(options.store);
    this.#loops = [this.#followTable(), this.#followSuspensions(), this.#pollHeartbeats(), this.#pollUsage()];
  }

  /** Rejects if the watch stops because of a broken invariant. Never resolves. */
  get failed(): Promise<unknown> {
    return Promise.all(this.#loops).then(() => new Promise(() => {}));
  }

  /** Waits for the first complete table and the first heartbeats, and then reads the heartbeats and the usage again. */
  async refresh(): Promise<void> {
    await this.#ready.promise;
    await Promise.all([this.#readHeartbeats(), this.#readUsage()]);
  }

  /** What the ledger says about tenants and Services. */
  get notices(): UsageNotices {
    return withThrottleNotices(this.#notices, this.#table ?? EMPTY_TABLE);
  }

  get isReady(): boolean {
    return this.#table !== undefined && this.#isReachable;
  }

  /** Whether the last read of the heartbeats succeeded. */
  get isReachable(): boolean {
    return this.#isReachable;
  }

  /** The last table, or undefined before the first complete table was read. */
  get table(): RoutingTable | undefined {
    return this.#table;
  }

  get suspensions(): readonly Suspension[] {
    return this.#suspensions;
  }

  /** The suspensions that hold on one node only, from the last heartbeats. During an upgrade, two proxies of a node report the same. */
  get localSuspensions(): readonly Suspension[] {
    const byUid = new Map<string, Suspension>();
    for (const { localSuspensions = [] } of this.#heartbeats)
      for (const suspension of localSuspensions) byUid.set(suspension.uid, suspension);
    return [...byUid.values()];
  }

  get position(): TablePosition | null {
    return this.#position;
  }

  /** Number of table entries that this version cannot read, because a newer version wrote them. */
  get unreadableEntries(): number {
    return this.#unreadableEntries;
  }

  /** Returns the last known state of the fleet. Throws `ApiError` StoreAway before the first complete table was read. */
  fleet(): FleetState {
    if (this.#table === undefined) {
      const reason = this.#tableError === '' ? '' : ` (${this.#tableError})`;
      throw new ApiError(
        'StoreAway',
        `no routing table has been read yet${reason}; check that a controller is running and that the store is reachable`,
      );
    }
    return {
      table: this.#table,
      heartbeats: this.#heartbeats,
      suspensions: this.#suspensions,
      now: this.#options.clock.now(),
      previousAddresses: { get: (uid) => this.#addressesOf(uid) },
      reachable: this.#isReachable,
      silentSince: this.#silence.silentSince,
    };
  }

  /**
   * Returns the views of all Services, sorted by namespace and name. An unchanged view stays the same object. Throws the same error as
   * `fleet`.
   */
  views(): readonly ServiceView[] {
    const views = this.#viewTracker.update({ ...this.fleet(), previousAddresses: NO_PREVIOUS_ADDRESSES });
    if (views !== this.#views) this.#hasPendingService = views.some((view) => view.state === 'Pending');
    this.#views = views;
    return this.#reportedViews.withNotices(views, this.notices);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#loops);
  }

  async #followTable(): Promise<void> {
    const { store, clock, log } = this.#options;
    const setTable = (table: RoutingTable, position: TablePosition): void => {
      this.#table = table;
      this.#position = position;
      this.#notifyChange();
    };
    await followTable(store.table, {
      signal: this.#closing.signal,
      clock,
      onTable: setTable,
      onChanges: (_changes, table, { position }) => setTable(table, position),
      onUnreadable: (ids) => {
        this.#unreadableEntries = ids.length;
        log.warn(
          { entries: ids.length },
          'the routing table has entries of a newer version of Weir; ignoring these entries',
        );
      },
      onAway: (error) => {
        this.#tableError = errorMessage(error);
        log.warn(
          { reason: errorMessage(error) },
          'failed to follow the routing table; showing the last table and retrying',
        );
      },
      onBack: () => log.info('following the routing table again'),
    });
  }

  async #followSuspensions(): Promise<void> {
    const { store, clock, log } = this.#options;
    await followSuspensions(store.suspensions, {
      signal: this.#closing.signal,
      clock,
      onSuspensions: (suspensions) => {
        this.#suspensions = suspensions;
        this.#notifyChange();
      },
      onAway: (error) =>
        log.warn(
          { reason: errorMessage(error) },
          'failed to follow the Suspensions; showing the Suspensions that were read last, and retrying',
        ),
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
        log.warn(
          { reason: errorMessage(error) },
          'failed to read the heartbeats; showing the heartbeats that were read last, and retrying',
        );
      this.#isReachable = false;
    }
    if (this.isReady) this.#updateSilence();
    const silence = [...this.#silence.silentSince];
    const digest = JSON.stringify([this.#isReachable, this.#heartbeats.map(heartbeatDigest), silence]);
    const isChanged = digest !== this.#heartbeatsDigest;
    this.#heartbeatsDigest = digest;
    if (isChanged) this.#notifyChange();
  }

  async #pollUsage(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closing;
    const aborted = Promise.withResolvers<void>();
    signal.addEventListener('abort', () => aborted.resolve(), { once: true });
    await Promise.race([this.#ready.promise, aborted.promise]);
    while (!signal.aborted) {
      await this.#readUsage();
      await wait(clock, USAGE_POLL_INTERVAL_MS, signal).catch(() => {});
    }
  }

  /**
   * Finds the tenants that have used most of their traffic, and the Services whose limits refuse clients. If the store does not answer, keeps
   * what was found last.
   */
  async #readUsage(): Promise<void> {
    const { store, clock } = this.#options;
    const table = this.#table ?? EMPTY_TABLE;
    const tenants = entriesOf(table, 'tenant');
    const isLimited = tenants.some(({ limits }) => limits.trafficPerMonth !== undefined);
    const rows = isLimited ? await store.usage.rows(monthOf(clock.now())).catch(() => undefined) : [];
    await this.#refusals.update(clock.now()).catch(() => undefined);
    if (rows === undefined) return;
    const traffic = trafficMessages(tenants, trafficLevels(tenants, rows), clock.now());
    const notices = usageNoticesFor(table, { traffic, refusals: this.#refusals.shown });
    const isChanged = !isDeepStrictEqual(notices, this.#notices);
    this.#notices = notices;
    if (isChanged) this.#notifyChange();
  }

  #updateSilence(): void {
    if (this.#table === undefined) return;
    const nodes = entriesOf(this.#table, 'node').map(({ name }) => name);
    this.#silence.update({ nodes, heartbeats: this.#heartbeats, now: this.#options.clock.now() });
  }

  #notifyChange(): void {
    if (this.isReady) {
      this.views();
      this.#ready.resolve();
    }
    this.#options.onChange?.();
  }

  /** Returns the addresses of a Service. Builds the index of addresses on the first call after the views changed. */
  #addressesOf(uid: string): readonly string[] | undefined {
    if (this.#addressIndex?.views !== this.#views) {
      const byUid = new Map(this.#views.map((view) => [view.uid, view.addresses]));
      this.#addressIndex = { views: this.#views, byUid };
    }
    return this.#addressIndex?.byUid.get(uid);
  }
}

/** Returns the fields of a heartbeat on which the views depend. */
function heartbeatDigest(heartbeat: Heartbeat): unknown {
  const { node, life, draining, applied, listeners } = heartbeat;
  const errors = listeners.map((report) => report.error).filter((error) => error !== null);
  return [node, life, draining, applied?.id, listeners.filter((report) => report.bound).length, errors];
}
