// The contracts between the processes. Redis (`redis/`) and memory (`memory/`) keep them; one suite holds both to it.
//
// Every method of a store that is away rejects with a `StoreError` (code AWAY) within its own time limit; nobody waits
// for ever. State crosses here, never events: a follower that missed something reads the whole again.
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
  /** Whether the last exchange succeeded. */
  readonly connection: ConnectionState;
  /** Why `connection` is `away`, with what to do; undefined while it is not. */
  readonly connectionError: StoreError | undefined;
  /** Told of each change of `connection`; returns the way to stop. After `ready` everything written before may be gone. */
  onConnectionChange(listener: (state: ConnectionState) => void): () => void;
  /** Ends everything that follows or watches; afterwards every call rejects as AWAY. */
  close(): Promise<void>;
}

export type ConnectionState = 'connecting' | 'ready' | 'away' | 'closed';

// ── Routing table ───────────────────────────────────────────────────────────────────────────────────────────────

export interface TableStore {
  /** A token greater than every one before it. Claimed after the election is won; an older one can no longer write. */
  claimLeader(): Promise<number>;
  /** Undefined: nothing was ever written here, or it was wiped. */
  meta(): Promise<TableMeta | undefined>;
  /**
   * Forgets table, keys and changes and begins the next epoch, not whole, at revision 0. Used when what is stored is not what
   * this leader wrote.
   */
  openEpoch(request: { readonly leader: number; readonly id: string }): Promise<PublishResult>;
  /** Entries (with private keys, where they lie apart), stream and position in one step: only from the current leader, only on top of `predecessor`. */
  publish(publication: PublishRequest): Promise<PublishResult>;
  /** The whole table at one position; undefined while there is none that is whole ("away", never "empty"). */
  read(): Promise<TableSnapshot | undefined>;
  /**
   * What there is of a table that is not whole, as of no moment: a leader ended while it wrote. Not to be served: it only tells the next
   * one what that had granted. Undefined: nothing.
   */
  readPartial(): Promise<RoutingTable | undefined>;
  /**
   * The revisions after `after`, in order, as they are published. Throws `StoreError` GAP when what comes next was not
   * published on top of the last one given (trimmed, wiped, rolled back, new epoch): read the whole again. Throws AWAY
   * when the store is: come again with the same position. Ends when `signal` aborts.
   */
  revisions(options: { readonly after: TablePosition; readonly signal: AbortSignal }): AsyncIterable<Revision>;
}

export interface TableMeta extends TablePosition {
  /** False between the opening of an epoch, or a revision that is the first part of a change, and the one that ends it. */
  readonly complete: boolean;
  readonly leader: number;
}

export interface PublishRequest {
  readonly leader: number;
  readonly predecessor: TablePosition;
  /** Random, new for each revision. */
  readonly id: string;
  /** At most `MAX_CHANGES_PER_REVISION`. */
  readonly changes: readonly Change[];
  /** The table is whole at this revision. False: the change goes on in the next one, and nobody applies it before. */
  readonly complete: boolean;
  /** Since when the world has been as this revision says, milliseconds since the epoch; absent: not known. */
  readonly changedAt?: number | undefined;
}

export type PublishResult =
  | { readonly kind: 'published'; readonly position: TablePosition }
  /** Another leader was there later (0: nobody since a wipe): step back and look at the Lease. */
  | { readonly kind: 'not-leader'; readonly leader: number }
  /** The store is not at `predecessor`: it was wiped, rolled back or written by another. */
  | { readonly kind: 'wrong-predecessor'; readonly meta: TableMeta | undefined };

export interface TableSnapshot {
  readonly table: RoutingTable;
  readonly position: TablePosition;
  /** Ids of entries that could not be decoded (written by a newer version), or whose private key is not to be had: not in `table`. */
  readonly unreadable: readonly string[];
}

export interface Revision {
  readonly position: TablePosition;
  /** Id of the revision that it was published on. */
  readonly predecessor: string;
  /** As in `Publication`. */
  readonly complete: boolean;
  readonly changedAt?: number;
  /** Without the certificates whose private key a later revision has replaced since: that one brings them, or deletes them. */
  readonly changes: readonly Change[];
  /** Ids of entries that were put, and are as in `TableCopy`: not in `changes`. */
  readonly unreadable: readonly string[];
}

// ── Heartbeats ──────────────────────────────────────────────────────────────────────────────────────────────────

export interface HeartbeatStore {
  /**
   * The number of a new life of the node's proxy: greater than every one before, and at least `atLeast` (one more than
   * the last in its state directory). A store that knows nothing of the node (new or wiped) begins at the seconds of its
   * clock, so that it does not give out a number a second time.
   */
  beginIncarnation(node: string, atLeast: number): Promise<number>;
  /** Kept for 3 s. */
  record(heartbeat: Heartbeat): Promise<void>;
  /** Goes at once, at the end of a drain. */
  remove(node: string, life: number): Promise<void>;
  /** Those not older than 3 s, by node and life; one of a version that is not known is `unreadable`, and not left out. */
  list(): Promise<readonly Heartbeat[]>;
  /** Names of the nodes of which a proxy ever began a life here. */
  knownNodes(): Promise<ReadonlySet<string>>;
}

// ── Ledger ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** Minutes are kept for 2 hours, hours for 8 days, days for 400 days, months for ever. */
export interface UsageStore {
  /**
   * Adds what the report has beyond the last one seen of its life, exactly once, to the periods of its points. Reports may be
   * lost, repeated and reordered. What was accepted may still be lost with the store: after each `ready` of the connection
   * say the present value of all slots again.
   */
  flush(report: UsageReport): Promise<FlushResult>;
  /** What was used in one period (by one tenant), by Service and tenant. */
  rows(period: UsagePeriod, tenant?: string): Promise<readonly UsageRow[]>;
  /** Periods of one tenant that hold anything, of one length, ascending. */
  periods(tenant: string, length: PeriodLength): Promise<readonly UsagePeriod[]>;
  /** The rows of these months, and the last seen value of each life of each slot, at one moment: what `seed` takes back. */
  exportSeed(months: readonly UsagePeriod[]): Promise<UsageSeed>;
  /** False in a new or wiped store until `seed` was called: `flush` answers `seeding` meanwhile. */
  isSeeded(): Promise<boolean>;
  /** Writes month totals and bases and opens the ledger, in one step; does nothing when it is open. Tells which. */
  seed(seed: UsageSeed): Promise<'seeded' | 'already'>;
  /** Refuses this life and all lower ones of the node from now on, and forgets their bases. */
  fold(node: string, life: number): Promise<void>;
}

export type FlushResult =
  | { readonly kind: 'accepted' }
  /** Totals are being restored. Keep the points and come again. */
  | { readonly kind: 'seeding' }
  /** This life was folded away: what it still had is refused for ever. */
  | { readonly kind: 'folded' };

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
  /** Lives that are refused, with all lower ones of their node. Left out: a late report of one of them is counted again. */
  readonly folded?: readonly FoldedIncarnation[];
}

export interface FoldedIncarnation {
  readonly node: string;
  readonly life: number;
}

// ── Cut-offs ────────────────────────────────────────────────────────────────────────────────────────────────────

export interface SuspensionStore {
  /** Puts it in place of the one with its uid; the same again changes nothing. */
  put(cutoff: Suspension): Promise<void>;
  /** Only after its Suspension was seen deleted, or `until` passed, or a person said so. */
  remove(uid: string): Promise<void>;
  /**
   * Everything that is known to be in force is now in (the Suspensions of the source, and what the caller follows of
   * those made in the store): from here on what is not listed is not in force.
   */
  markComplete(): Promise<void>;
  read(): Promise<SuspensionState>;
  /** The present state, then each newer one. Throws AWAY when the store is. Ends when `signal` aborts. */
  watch(signal: AbortSignal): AsyncIterable<SuspensionState>;
}

export interface SuspensionState {
  /** Counts up with every change. */
  readonly sequence: number;
  /** False in a new or wiped store, until the controller has put back what is in force: then absence means nothing. */
  readonly complete: boolean;
  /** Sorted by uid. */
  readonly suspensions: readonly Suspension[];
  /** Uids removed while not complete: these are known not to be in force. */
  readonly removed: readonly string[];
}
