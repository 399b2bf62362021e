// The contract between controller, proxies and console. `redis/` and `memory/` implement the contract; one test suite
// checks both.
//
// While the store is unreachable, every method rejects within its timeout with a `StoreError` of code AWAY. The store
// transfers state, not events: a follower that missed a change reads the complete state again.
import type {
  Change,
  Counters,
  Heartbeat,
  RoutingTable,
  Suspension,
  TablePosition,
  UsagePeriod,
  UsageReport,
  UsageRow,
} from '@weir/model/data-plane';
import type { StoreError } from './errors.ts';
import type { PeriodLength } from './usage-periods.ts';

export interface Store {
  readonly table: TableStore;
  readonly heartbeats: HeartbeatStore;
  readonly usage: UsageStore;
  readonly suspensions: SuspensionStore;
  /** `ready` if the last exchange with the store succeeded. */
  readonly connection: ConnectionState;
  /** Why `connection` is `away` and what the user can do; undefined in every other state. */
  readonly connectionError: StoreError | undefined;
  /**
   * Calls `listener` at each change of `connection`; returns a function that removes the listener. After a change to `ready` the store
   * may have lost everything that was written before.
   */
  onConnectionChange(listener: (state: ConnectionState) => void): () => void;
  /** Ends all followers and watchers. Every later call rejects with AWAY. */
  close(): Promise<void>;
}

export type ConnectionState = 'connecting' | 'ready' | 'away' | 'closed';

// ── Routing table ───────────────────────────────────────────────────────────────────────────────────────────────

export interface TableStore {
  /** Returns a leader token greater than all earlier tokens. From now on writes with an earlier token fail. Call after winning the election. */
  claimLeader(): Promise<number>;
  /** Returns the position of the stored table, or undefined if no table was ever written or the store was wiped. */
  meta(): Promise<TableMeta | undefined>;
  /**
   * Deletes the table, private keys and changes, and opens the next epoch at revision 0 with an incomplete table. A leader calls this if
   * the store does not hold what the leader wrote.
   */
  openEpoch(request: { readonly leader: number; readonly id: string }): Promise<PublishResult>;
  /** Writes entries, private keys, change stream and position atomically, if `leader` is current and the table is at `predecessor`. */
  publish(publication: PublishRequest): Promise<PublishResult>;
  /**
   * Returns the complete table at one position, or undefined while the store holds no complete table. Undefined does
   * not mean an empty table.
   */
  read(): Promise<TableSnapshot | undefined>;
  /**
   * Returns the entries of an incomplete table, left by a leader that ended while writing, or undefined if there are
   * none. The next leader uses the entries to keep their allocations; they must not serve traffic. They are not a
   * snapshot, because writes may happen during the read.
   */
  readPartial(): Promise<RoutingTable | undefined>;
  /**
   * Yields the revisions after `after` in order, as they are published, until `signal` aborts. Throws `StoreError` GAP
   * if the next revision does not follow the last one (the stream was trimmed, wiped, rolled back, or a new epoch was
   * opened): call `read`. Throws AWAY if the store is unreachable: call `revisions` again with the same position.
   */
  revisions(options: { readonly after: TablePosition; readonly signal: AbortSignal }): AsyncIterable<Revision>;
}

export interface TableMeta extends TablePosition {
  /**
   * Whether the table is complete: false after `openEpoch`, and after a revision with `complete: false`, until a
   * revision with `complete: true`.
   */
  readonly complete: boolean;
  readonly leader: number;
}

export interface PublishRequest {
  readonly leader: number;
  readonly predecessor: TablePosition;
  /** A random id, different for each revision. */
  readonly id: string;
  /** At most `MAX_CHANGES_PER_REVISION`. */
  readonly changes: readonly Change[];
  /**
   * Whether the change ends with this revision. False if it continues in the next one; followers apply the change at
   * the revision with `true`.
   */
  readonly complete: boolean;
  /** When the cause of the change was observed, in milliseconds since the Unix epoch; absent if unknown. */
  readonly changedAt?: number | undefined;
}

export type PublishResult =
  | { readonly kind: 'published'; readonly position: TablePosition }
  /** Another process has claimed leadership since (`leader` is 0 after a wipe): stop writing and check the Lease. */
  | { readonly kind: 'not-leader'; readonly leader: number }
  /** The stored table is not at `predecessor`: the store was wiped, rolled back, or written by another leader. */
  | { readonly kind: 'wrong-predecessor'; readonly meta: TableMeta | undefined };

export interface TableSnapshot {
  readonly table: RoutingTable;
  readonly position: TablePosition;
  /** Ids of entries that are missing in `table`: a newer version wrote them, or their private key cannot be read. */
  readonly unreadable: readonly string[];
}

export interface Revision {
  readonly position: TablePosition;
  /** The id of the preceding revision. */
  readonly predecessor: string;
  /** As in `PublishRequest`. */
  readonly complete: boolean;
  readonly changedAt?: number;
  /**
   * The changes, without certificates whose private key a later revision has already replaced: that revision contains
   * or deletes them.
   */
  readonly changes: readonly Change[];
  /** Ids of put entries that are missing in `changes` because they cannot be read, as in `TableSnapshot`. */
  readonly unreadable: readonly string[];
}

// ── Heartbeats ──────────────────────────────────────────────────────────────────────────────────────────────────

export interface HeartbeatStore {
  /**
   * Returns the number of a new incarnation of the node's proxy: greater than every earlier number, and at least `atLeast` (the last
   * number in the proxy's state directory plus one). For an unknown node the first number is the store's clock in seconds, so that a
   * wiped store never returns a number twice.
   */
  beginIncarnation(node: string, atLeast: number): Promise<number>;
  /** Stores a heartbeat for `HEARTBEAT_TTL_MS`. */
  record(heartbeat: Heartbeat): Promise<void>;
  /** Removes the heartbeat of an incarnation at once; a proxy calls this at the end of a drain. */
  remove(node: string, life: number): Promise<void>;
  /**
   * Returns the heartbeats not older than `HEARTBEAT_TTL_MS`, sorted by node and incarnation. A heartbeat of an unknown
   * version is `unreadable`.
   */
  list(): Promise<readonly Heartbeat[]>;
  /** Returns the names of all nodes for which an incarnation was ever begun. */
  knownNodes(): Promise<ReadonlySet<string>>;
}

// ── Usage ledger ────────────────────────────────────────────────────────────────────────────────────────────────

/** The ledger of usage by tenant and Service. Keeps minutes for 2 hours, hours for 8 days, days for 400 days, months forever. */
export interface UsageStore {
  /**
   * Adds the increase since the last report of the same incarnation, exactly once, to the periods of the report's points. Reports may be
   * lost, repeated and reordered. The store may lose accepted usage: after each change of the connection to `ready`, report the current
   * value of all slots again.
   */
  flush(report: UsageReport): Promise<FlushResult>;
  /** Returns the usage of one period, of one or all tenants, sorted by Service and tenant. */
  rows(period: UsagePeriod, tenant?: string): Promise<readonly UsageRow[]>;
  /** Returns the periods of one length in which a tenant has usage, ascending. */
  periods(tenant: string, length: PeriodLength): Promise<readonly UsagePeriod[]>;
  /**
   * Returns the rows of the given months and the base of each slot of each incarnation, at one moment, as `seed` takes
   * them.
   */
  exportSeed(months: readonly UsagePeriod[]): Promise<UsageSeed>;
  /**
   * Returns whether the ledger is open. It is not open in a new or wiped store until `seed` is called; `flush` returns
   * `seeding` until then.
   */
  isSeeded(): Promise<boolean>;
  /** Writes month totals and bases and opens the ledger, atomically. Returns `already` and does nothing if the ledger is open. */
  seed(seed: UsageSeed): Promise<'seeded' | 'already'>;
  /** Refuses all later reports of this and lower incarnations of the node, and deletes their bases. */
  fold(node: string, life: number): Promise<void>;
}

export type FlushResult =
  | { readonly kind: 'accepted' }
  /** Totals are being restored: keep the report and retry. */
  | { readonly kind: 'seeding' }
  /** The incarnation was folded: its reports are refused forever. */
  | { readonly kind: 'folded' };

/** The last seen cumulative counters of one slot of one incarnation; `flush` adds only what exceeds them. */
export interface UsageBase {
  readonly service: string;
  readonly tenant: string;
  readonly node: string;
  readonly life: number;
  readonly counters: Counters;
}

export interface UsageSeed {
  readonly months: readonly { readonly month: UsagePeriod; readonly rows: readonly UsageRow[] }[];
  readonly bases: readonly UsageBase[];
  /**
   * Incarnations whose reports are refused, with all lower incarnations of the node. If they were missing, a late
   * report would be counted again.
   */
  readonly folded?: readonly FoldedIncarnation[];
}

export interface FoldedIncarnation {
  readonly node: string;
  readonly life: number;
}

// ── Suspensions ─────────────────────────────────────────────────────────────────────────────────────────────────

export interface SuspensionStore {
  /** Adds a suspension or replaces the suspension with the same uid. An identical suspension changes nothing. */
  put(suspension: Suspension): Promise<void>;
  /** Removes a suspension. Call only if the Suspension object was deleted, `until` has passed, or an operator lifted it. */
  remove(uid: string): Promise<void>;
  /**
   * Declares the list complete: the caller has put all suspensions that it knows, from Suspension objects and from the store. From now
   * on a suspension that is not listed is not in force.
   */
  markComplete(): Promise<void>;
  read(): Promise<SuspensionState>;
  /**
   * Yields the current state, then each newer state, until `signal` aborts. Throws AWAY if the store is unreachable.
   */
  watch(signal: AbortSignal): AsyncIterable<SuspensionState>;
}

export interface SuspensionState {
  /** Increases with every change. */
  readonly sequence: number;
  /**
   * Whether the list is complete: false in a new or wiped store until `markComplete`. Until then a suspension that is
   * not listed may be in force.
   */
  readonly complete: boolean;
  /** Sorted by uid. */
  readonly suspensions: readonly Suspension[];
  /** The uids that were removed while the list was incomplete: these suspensions are not in force. */
  readonly removed: readonly string[];
}
