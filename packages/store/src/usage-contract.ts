// The part of the store contract that is about usage.
import type { Counters, SeriesLength, UsagePeriod, UsageReport, UsageRow } from '@weir/model/data-plane';
import type { PeriodLength } from './usage-periods.ts';

/**
 * The ledger of usage by tenant and Service. Keeps minutes for 2 days, hours for 60 days, days for two years (`KEPT_POINTS`), and months
 * forever.
 */
export interface UsageStore {
  /**
   * Adds the increase of each counter since the last report of the same incarnation to the periods of the report's points. Counts each
   * increase once, even if reports are lost, repeated or reordered. The store may lose accepted usage: when `connection` changes to
   * `ready`, report the current values of all slots again.
   */
  flush(report: UsageReport): Promise<FlushResult>;
  /** Returns the usage in one period, of `tenant` or of all tenants, sorted by Service and tenant. */
  rows(period: UsagePeriod, tenant?: string): Promise<readonly UsageRow[]>;
  /** Returns the periods of one length in which a tenant has usage, ascending. */
  periods(tenant: string, length: PeriodLength): Promise<readonly UsagePeriod[]>;
  /** Returns the points of a series in a range of time, ascending. A point without usage is missing. */
  series(query: SeriesQuery): Promise<readonly SeriesPoint[]>;
  /** Returns the argument for `seed`: the rows of the given months, all bases and all folded incarnations, read at one moment. */
  exportSeed(months: readonly UsagePeriod[]): Promise<UsageSeed>;
  /**
   * Reports whether the ledger is open. The ledger of a new or wiped store is closed until `seed` is called; `flush` returns `seeding`
   * while the ledger is closed.
   */
  isSeeded(): Promise<boolean>;
  /**
   * Returns when `seed` restored earlier usage, in milliseconds since the Unix epoch. Returns undefined if the ledger began empty or is
   * closed, or if the time is unknown because an older version restored the ledger or the process has restarted with its state directory.
   */
  restoredAt(): Promise<number | undefined>;
  /**
   * Writes month totals, bases and folded incarnations and opens the ledger, atomically. Returns `already` and does nothing if the ledger
   * is open.
   */
  seed(seed: UsageSeed): Promise<'seeded' | 'already'>;
  /**
   * Adds the usage of every Service that has been gone for `GONE_SERVICE_TTL_MS` to the row of its namespace and tenant that has the name
   * `OTHER_SERVICES_NAME`, in each period, and forgets the Service. The totals of the tenant do not change. `existing` has the uids of all
   * Services that exist; `now` is in milliseconds since the Unix epoch. A Service counts as gone since the first call without its uid.
   */
  foldGoneServices(existing: ReadonlySet<string>, now: number): Promise<void>;
  /**
   * Forgets the incarnations of every node that has been gone for `GONE_NODE_TTL_MS`, and their bases. Afterwards, the ledger refuses
   * reports of an unknown node's incarnations that began more than `GONE_NODE_TTL_MS` before the call. `existing` has the names of all
   * nodes that exist or have a proxy. A node counts as gone since the first call without its name. `now` is in milliseconds since the Unix
   * epoch.
   */
  foldGoneNodes(existing: ReadonlySet<string>, now: number): Promise<void>;
  /** Returns the incarnations that have sent a full report since the ledger was opened, and are not folded. */
  reportedInFull(): Promise<readonly Incarnation[]>;
  /** Refuses all later reports of incarnation `life` and lower incarnations of the node, and deletes the bases of these incarnations. */
  fold(node: string, life: number): Promise<void>;
}

export interface SeriesQuery {
  readonly tenant: string;
  /** The uid of a Service, or an `otherServicesUid`. If undefined, the points have the usage of the whole tenant. */
  readonly service?: string | undefined;
  readonly length: SeriesLength;
  /** The points that begin at or after `from` and before `until`, in whole minutes since the Unix epoch. */
  readonly from: number;
  readonly until: number;
}

export interface SeriesPoint {
  /** The start of the point in whole minutes since the Unix epoch. */
  readonly minute: number;
  readonly counters: Counters;
}

export type FlushResult =
  | { readonly kind: 'accepted' }
  /** The ledger is closed until `seed` restores the totals: keep the report and retry. */
  | { readonly kind: 'seeding' }
  /** The incarnation was folded: the store refuses the incarnation's reports forever. */
  | { readonly kind: 'folded' };

/**
 * The last seen cumulative counters of one Service and tenant in one incarnation. `flush` adds only the increase over these counters.
 *
 * A base of other Services (`otherServicesUid`) is the sum of the bases of several Services of one namespace. `flush` subtracts this sum
 * from the increases of the Services of this namespace and tenant in this incarnation until the sum is used up. When the proxy has reported
 * in full, the tenant's total is therefore the same as with single bases; only its distribution among these Services may differ.
 */
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
   * For each node, the highest folded incarnation: reports of this incarnation and of lower incarnations are refused. The node '' stands
   * for all nodes that the ledger does not know. Without this list, a late report of a folded incarnation would be counted a second time.
   */
  readonly folded?: readonly Incarnation[];
}

export interface Incarnation {
  readonly node: string;
  readonly life: number;
}
