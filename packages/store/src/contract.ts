// The contract between controller, proxies and console. `redis/` and `memory/` implement the contract, and one test suite checks both
// implementations.
//
// While the store is unreachable, every method rejects within its timeout with a `StoreError` of code AWAY. The store transfers state, not
// events: a follower that missed a change reads the complete state again.
import type {
  Change,
  Heartbeat,
  LeasedResource,
  RoutingTable,
  ShareClaim,
  Suspension,
  TablePosition,
} from '@weir/model/data-plane';
import type { CallStatistics } from './call-statistics.ts';
import type { StoreError } from './errors.ts';
import type { Incarnation, UsageStore } from './usage-contract.ts';

export type * from './usage-contract.ts';

export interface Store {
  readonly table: TableStore;
  readonly heartbeats: HeartbeatStore;
  readonly usage: UsageStore;
  readonly suspensions: SuspensionStore;
  readonly leases: LeaseStore;
  /** `ready` if the last exchange with the store succeeded. */
  readonly connection: ConnectionState;
  /** Why `connection` is `away` and what the user can do; undefined in every other state. */
  readonly connectionError: StoreError | undefined;
  /** What this process has measured of its calls; undefined for a store in memory. */
  readonly statistics?: CallStatistics;
  /**
   * Calls `listener` at each change of `connection`; returns a function that removes the listener. When `connection` changes to `ready`,
   * the store may have lost all data that was written before.
   */
  onConnectionChange(listener: (state: ConnectionState) => void): () => void;
  /** Ends all followers and watchers. Every later call rejects with AWAY. */
  close(): Promise<void>;
}

export type ConnectionState = 'connecting' | 'ready' | 'away' | 'closed';

// ── Routing table ───────────────────────────────────────────────────────────────────────────────────────────────

export interface TableStore {
  /**
   * Returns a leader token greater than all earlier tokens. Later writes with an earlier token fail. Call this method after winning the
   * election.
   */
  claimLeader(): Promise<number>;
  /** Returns the position of the stored table, or undefined if no table was ever written or the store was wiped. */
  meta(): Promise<TableMeta | undefined>;
  /**
   * Deletes the table, private keys and changes, and opens the next epoch at revision 0 with an incomplete table. A leader calls this
   * method if the stored table is not the table that the leader wrote.
   */
  openEpoch(request: { readonly leader: number; readonly id: string }): Promise<PublishResult>;
  /** Writes entries, private keys, change stream and position atomically, if `leader` is current and the table is at `predecessor`. */
  publish(publication: PublishRequest): Promise<PublishResult>;
  /**
   * Returns the complete table at one position, or undefined while the store holds no complete table. A complete table without entries is
   * returned as an empty table.
   */
  read(): Promise<TableSnapshot | undefined>;
  /**
   * Returns the entries of a table that is incomplete because the last leader ended while writing, or undefined if there are no entries.
   * The new leader keeps the allocations in these entries, but does not serve traffic with them. Writes during the read may mix entries of
   * several positions.
   */
  readPartial(): Promise<RoutingTable | undefined>;
  /**
   * Yields the revisions after `after` in order, as they are published, until `signal` aborts. Throws `StoreError` GAP if the stored
   * revisions do not continue from the last yielded position, because the stream was trimmed or wiped, the store was rolled back, or a new
   * epoch was opened. After a GAP, call `read`. Throws AWAY if the store is unreachable. After AWAY, call `revisions` again with the last
   * yielded position.
   */
  revisions(options: { readonly after: TablePosition; readonly signal: AbortSignal }): AsyncIterable<Revision>;
}

export interface TableMeta extends TablePosition {
  /**
   * Whether the table is complete: false after `openEpoch` and after a revision with `complete: false`, until the next revision with
   * `complete: true`.
   */
  readonly complete: boolean;
  readonly leader: number;
}

export interface PublishRequest {
  readonly leader: number;
  readonly predecessor: TablePosition;
  /** A random id, different for each revision. */
  readonly id: string;
  /** At most `MAX_CHANGES_PER_REVISION` changes. */
  readonly changes: readonly Change[];
  /**
   * Whether this revision is the last revision of the change. If a change is split into several revisions, followers apply the change when
   * they receive the last of these revisions.
   */
  readonly complete: boolean;
  /** When the cause of the change was observed, in milliseconds since the Unix epoch; absent if unknown. */
  readonly changedAt?: number | undefined;
}

export type PublishResult =
  | { readonly kind: 'published'; readonly position: TablePosition }
  /** Another process has claimed leadership, or the store was wiped (`leader` is 0): stop writing and check the Lease. */
  | { readonly kind: 'not-leader'; readonly leader: number }
  /** The stored table is not at `predecessor`: the store was wiped, rolled back, or written by another leader. */
  | { readonly kind: 'wrong-predecessor'; readonly meta: TableMeta | undefined };

export interface TableSnapshot {
  readonly table: RoutingTable;
  readonly position: TablePosition;
  /**
   * Ids of the entries that are missing in `table`: a newer version of Weir wrote the entry, or the private key of the entry cannot be
   * read.
   */
  readonly unreadable: readonly string[];
}

export interface Revision {
  readonly position: TablePosition;
  /** The id of the preceding revision. */
  readonly predecessor: string;
  /** Whether this revision is the last revision of the change, as in `PublishRequest`. */
  readonly complete: boolean;
  readonly changedAt?: number;
  /** The changes. A certificate is missing if a later revision that is already stored replaces or deletes the certificate. */
  readonly changes: readonly Change[];
  /** Ids of put entries that are missing in `changes` because the entry or its private key cannot be read. */
  readonly unreadable: readonly string[];
}

// ── Heartbeats ──────────────────────────────────────────────────────────────────────────────────────────────────

export interface HeartbeatStore {
  /**
   * Returns the number of a new incarnation of the node's proxy: greater than every earlier number, and at least `atLeast` (the last number
   * in the proxy's state directory plus one). The number is at least the store's clock in seconds, so that numbers do not repeat after the
   * store was wiped, or after a failover lost the last number.
   */
  beginIncarnation(node: string, atLeast: number): Promise<number>;
  /**
   * Stores a heartbeat for `HEARTBEAT_TTL_MS`. Also restores the number of the incarnation if a failover has lost the number, so that later
   * incarnations of the node get higher numbers.
   */
  record(heartbeat: Heartbeat): Promise<void>;
  /** Removes the heartbeat of an incarnation at once. A proxy calls this method at the end of a drain. */
  remove(node: string, life: number): Promise<void>;
  /**
   * Returns the heartbeats of the last `HEARTBEAT_TTL_MS`, sorted by node and incarnation. A heartbeat of an unknown version is
   * `unreadable`.
   */
  list(): Promise<readonly Heartbeat[]>;
  /**
   * Returns the names of all nodes for which `beginIncarnation` or `record` was ever called, except nodes that `UsageStore.foldGoneNodes`
   * may have forgotten.
   */
  knownNodes(): Promise<ReadonlySet<string>>;
}

// ── Suspensions ─────────────────────────────────────────────────────────────────────────────────────────────────

export interface SuspensionStore {
  /**
   * Adds a suspension or replaces the suspension with the same uid. Does nothing if the store has an identical suspension. A change is
   * recorded in the audit trail, unless `adopts` is the uid of a stored suspension with the same content, which this suspension replaces.
   */
  put(suspension: Suspension, adopts?: string): Promise<void>;
  /**
   * Removes a suspension. Call this method only if the Suspension object was deleted, `until` has passed, or an operator lifted the
   * suspension. Records `release` in the audit trail. A release by a known user is recorded even if the suspension is not in the store any
   * more: the controller may have noticed the deletion of the object first.
   */
  remove(uid: string, release?: SuspensionRelease): Promise<void>;
  /**
   * Declares the list complete: the caller has put all suspensions that the caller knows, from Suspension objects and from the store.
   * Afterwards a suspension that is not listed is not in force. A leader declares the list complete at the start of its term, and again
   * after the store may have lost changes. The sequence of the declaration is higher than `known`, the highest sequence that proxies have
   * reported: the clock of a new primary may be behind the clock of the former primary.
   */
  markComplete(known?: number): Promise<void>;
  read(): Promise<SuspensionState>;
  /** Yields the current state and each newer state until `signal` aborts. Throws AWAY if the store is unreachable. */
  watch(signal: AbortSignal): AsyncIterable<SuspensionState>;
  /**
   * Returns at most `AUDIT_PAGE_SIZE` records of the audit trail, newest first. The trail has the last two years, and at most
   * `MAX_AUDIT_RECORDS` records. `before` is the id of a record: only older records are returned.
   */
  audit(before?: string): Promise<readonly SuspensionAuditRecord[]>;
}

/** Why a suspension was removed, and by whom. */
export interface SuspensionRelease {
  readonly suspension: Suspension;
  /** `resumed`: through the console. `deleted`: the Suspension object or its manifest was deleted. `expired`: `until` has passed. */
  readonly why: 'resumed' | 'deleted' | 'expired';
  /** The user; absent if not known. */
  readonly by?: string;
}

/** One suspension, change of a suspension, or release. */
export interface SuspensionAuditRecord {
  /** Grows from record to record; only for `SuspensionStore.audit`. */
  readonly id: string;
  /** Milliseconds since the epoch, from the store's clock. */
  readonly at: number;
  readonly suspension: Suspension;
  /** Null if the record is about a suspension that was made or changed. */
  readonly release: Pick<SuspensionRelease, 'why' | 'by'> | null;
}

export interface SuspensionState {
  /**
   * Increases with every change, and is at least the store's clock in milliseconds. A change that follows a rollback of the store therefore
   * has a higher sequence than the changes that the rollback lost.
   */
  readonly sequence: number;
  /**
   * The sequence of the last call of `markComplete`; null if there was none, because the store is new or was wiped. A suspension that is
   * not listed may be in force if it was put into the store after this sequence and lost by a rollback.
   */
  readonly completeSince: number | null;
  /** Sorted by uid. */
  readonly suspensions: readonly Suspension[];
  /**
   * The sequence of the last change of each suspension, by uid: of the put of a listed suspension, or of the removal of a suspension that
   * was removed since `completeSince`.
   */
  readonly changes: ReadonlyMap<string, number>;
}

// ── Leases of fleet-wide limits ─────────────────────────────────────────────────────────────────────────────────

/**
 * Divides fleet-wide limits between the members, the incarnations of proxies that take part. The store records for each lease and member
 * the most that the member may be using (`held`), and grants only what is left of the limit. For this purpose a member
 *
 * - uses at most its share, and lowers a share before it reports the lower `held`;
 * - raises a share only when a reply grants this, and ignores the reply if it has sent a later exchange with the same lease;
 * - exchanges each lease at least every `LEASE_REGISTRATION_MS` while the store is reachable, and at once after a reconnection;
 * - sets `mayRaise` to false for `LEASE_REGISTRATION_MS` after a reconnection, because the store may have lost what it granted last;
 * - keeps its last share for as long as the store is unreachable.
 *
 * The members' use then never exceeds the limit, whatever calls are lost, late or repeated, and even if the store loses its data. There
 * are two exceptions: a member that does not reach the store after the store lost its data, and a member that lives although its shares
 * were released or have expired (`MAX_LEASE_SILENCE_MS`).
 */
export interface LeaseStore {
  /**
   * Records what the member holds and needs, and returns a grant for each request in order; none if a later exchange was processed. Throws
   * FORBIDDEN if the user of the store has no right to leases.
   */
  exchange(exchange: LeaseExchange): Promise<readonly LeaseGrant[]>;
  /** Frees the shares of a member that has ended, or that is about to end and has stopped using its shares. */
  release(node: string, life: number): Promise<void>;
  /** Records that a member lives although the store may not hear from it, so that the member keeps its shares. */
  keep(node: string, life: number): Promise<void>;
  /** Returns all members that have not been released, in no particular order. Some of them may have expired. */
  members(): Promise<readonly LeaseMember[]>;
  /**
   * Returns the number of open connections of a tenant or Service with a limit of `connections`, as all members have last reported them as
   * `floor`. Returns 0 for an owner without this limit.
   */
  openConnections(owner: LeaseOwner): Promise<number>;
}

export interface LeaseMember extends Incarnation {
  /**
   * Milliseconds from the last `exchange` or `keep` of this member to the last exchange of any member. Time in which the store was away
   * (`MAX_LEASE_GAP_MS`) does not count. 0 if the clock of the store was set back in between.
   */
  readonly silentMs: number;
}

export interface LeaseName {
  readonly owner: LeaseOwner;
  readonly resource: LeasedResource;
}

export type LeaseOwner =
  | { readonly kind: 'tenant'; readonly name: string }
  | { readonly kind: 'service'; readonly uid: string };

export interface LeaseExchange extends Incarnation {
  /** Increases with every exchange of the member. */
  readonly sequence: number;
  readonly mayRaise: boolean;
  /** At most `MAX_LEASES_PER_EXCHANGE` requests, each for another lease. */
  readonly requests: readonly LeaseRequest[];
}

/** Shares and limits are in the units of `ShareClaim`. */
export interface LeaseRequest extends LeaseName {
  readonly limit: number;
  /** The claim of the member, for the other members. */
  readonly claim: ShareClaim;
  /** The most that the member may be using now. With `wanted` 0 as well, the member gives the lease back. */
  readonly held: number;
  /** The share that the member should have: `wantedShare` with `claim` and the claims of the last grant. */
  readonly wanted: number;
}

export interface LeaseGrant {
  /** What the member may use from now on: `wanted` if it is at most `held`, otherwise at least `held` and at most `wanted`. */
  readonly share: number;
  /** The claims of the other members, in the same order for all members. */
  readonly others: readonly ShareClaim[];
  /** The number of members before this member in that order. */
  readonly rank: number;
}
