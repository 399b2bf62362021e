// The contracts between the processes. Redis (`redis/`) and memory (`memory/`) keep them; one suite holds both to it.
//
// Every method of a store that is away rejects with a `StoreError` (code AWAY) within its own time limit; nobody waits
// for ever. State crosses here, never events: a follower that missed something reads the whole again.
import type {
  Change,
  Counters,
  Cutoff,
  Heartbeat,
  Period,
  Position,
  RoutingTable,
  UsageReport,
  UsageRow,
} from '@weir/model';

export interface Store {
  readonly table: TableStore;
  readonly heartbeats: HeartbeatStore;
  readonly usage: UsageStore;
  readonly cutoffs: CutoffStore;
  /** Whether the last exchange succeeded. */
  readonly connection: ConnectionState;
  /** Told of each change of `connection`; returns the way to stop. After `ready` everything written before may be gone. */
  onConnection(listener: (state: ConnectionState) => void): () => void;
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
   * Forgets table and changes and begins the next epoch, incomplete, at revision 0. Used when what is stored is not what
   * this leader wrote.
   */
  openEpoch(request: { readonly leader: number; readonly id: string }): Promise<PublishResult>;
  /** Entries, stream and position in one step: only from the current leader, only on top of `predecessor`. */
  publish(publication: Publication): Promise<PublishResult>;
  /** The whole table at one position; undefined while there is none that is complete ("away", never "empty"). */
  read(): Promise<TableCopy | undefined>;
  /**
   * The revisions after `after`, in order, as they are published. Throws `StoreError` GAP when the next one's
   * predecessor is not the last one given (trimmed, wiped, rolled back, new epoch): read the whole again. Ends when
   * `signal` aborts.
   */
  revisions(options: { readonly after: Position; readonly signal: AbortSignal }): AsyncIterable<Revision>;
}

export interface TableMeta extends Position {
  /** False between the opening of an epoch and the revision that makes it whole. */
  readonly complete: boolean;
  readonly leader: number;
}

export interface Publication {
  readonly leader: number;
  readonly predecessor: Position;
  /** Random, new for each revision. */
  readonly id: string;
  readonly changes: readonly Change[];
  /** The epoch is whole from this revision on. Once true, later publications of the epoch may leave it out. */
  readonly complete: boolean;
}

export type PublishResult =
  | { readonly kind: 'published'; readonly position: Position }
  /** Another leader has a higher token: step back and look at the Lease. */
  | { readonly kind: 'not-leader'; readonly leader: number }
  /** The store is not at `predecessor`: it was wiped, rolled back or written by another. */
  | { readonly kind: 'wrong-predecessor'; readonly meta: TableMeta | undefined };

export interface TableCopy {
  readonly table: RoutingTable;
  readonly position: Position;
  /** Entries that could not be decoded (written by a newer version): left out of `table`. */
  readonly unreadable: readonly string[];
}

export interface Revision {
  readonly position: Position;
  readonly changes: readonly Change[];
  readonly unreadable: readonly string[];
}

// ── Heartbeats ──────────────────────────────────────────────────────────────────────────────────────────────────

export interface HeartbeatStore {
  /** The number of a new life of the node's proxy: greater than every one before, also of those in the state directory. */
  beginLife(node: string, atLeast: number): Promise<number>;
  /** Kept for 3 s. */
  beat(heartbeat: Heartbeat): Promise<void>;
  /** Goes at once, at the end of a drain. */
  leave(node: string, life: number): Promise<void>;
  /** Those not older than 3 s, by node and life. */
  list(): Promise<readonly Heartbeat[]>;
}

// ── Ledger ──────────────────────────────────────────────────────────────────────────────────────────────────────

export interface UsageStore {
  /** Adds what the report has beyond the last one seen of its life, exactly once. */
  flush(report: UsageReport): Promise<FlushResult>;
  /** What was used in one period, by (Service, tenant). */
  rows(period: Period): Promise<readonly UsageRow[]>;
  /** Periods of one tenant that hold anything, of the length of `like`, ascending. */
  periods(tenant: string, like: 'minute' | 'hour' | 'day' | 'month'): Promise<readonly Period[]>;
  /** The last seen cumulative value of each life of each slot: what `seed` takes back. */
  bases(): Promise<readonly UsageBase[]>;
  /** False in a new epoch until `seed` was called: `flush` answers `seeding` meanwhile. */
  isSeeded(): Promise<boolean>;
  /** Writes month totals and bases and opens the ledger, in one step; does nothing when it is open. Tells which. */
  seed(seed: UsageSeed): Promise<'seeded' | 'already'>;
  /** Refuses this life and all lower ones of the node from now on, and forgets their bases. */
  fold(node: string, life: number): Promise<void>;
}

export type FlushResult =
  | { readonly kind: 'accepted' }
  /** New epoch: totals are being restored. Keep the points and come again. */
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
  readonly months: readonly { readonly month: Period; readonly rows: readonly UsageRow[] }[];
  readonly bases: readonly UsageBase[];
}

// ── Cut-offs ────────────────────────────────────────────────────────────────────────────────────────────────────

export interface CutoffStore {
  put(cutoff: Cutoff): Promise<void>;
  /** Only after its Suspension was seen deleted, or `until` passed, or a person said so. */
  remove(uid: string): Promise<void>;
  /** All Suspensions of the source are now in: from here on what is not listed is not in force. */
  complete(): Promise<void>;
  read(): Promise<CutoffState>;
  /** The present state, then each newer one. Ends when `signal` aborts. */
  watch(signal: AbortSignal): AsyncIterable<CutoffState>;
}

export interface CutoffState {
  /** Counts up with every put and remove. */
  readonly sequence: number;
  /** False after a wipe, until the controller has put back what its source holds: then absence means nothing. */
  readonly complete: boolean;
  /** By uid. */
  readonly cutoffs: readonly Cutoff[];
}
