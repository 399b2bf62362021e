/**
 * The maximum number of changes in a revision. A larger change is split into several revisions, of which only the last has `complete:
 * true`.
 */
export const MAX_CHANGES_PER_REVISION = 500;
/** The maximum size of a revision's encoded entries. A revision with a single entry may be larger. */
export const MAX_BYTES_PER_REVISION = 1_000_000;

/** How many revisions the store keeps. A follower that is further behind reads the complete table. */
export const DEFAULT_KEPT_REVISIONS = 10_000;
/**
 * How many bytes of the revisions' encoded entries the store keeps: at least this number, at most twice as many. Without this limit 10,000
 * revisions could take gigabytes, because one Service with many source ranges takes 0.5 MB.
 */
export const DEFAULT_KEPT_BYTES: number = 32 * 1024 * 1024;

/** How long a heartbeat is valid. A proxy whose last heartbeat is older counts as gone. */
export const HEARTBEAT_TTL_MS = 3_000;

/** How long a Service must be gone before its rows in the ledger are added to the row `OTHER_SERVICES_NAME`. */
export const GONE_SERVICE_TTL_MS: number = 7 * 24 * 3_600_000;

/**
 * How long a node must be gone before the store forgets the node and its incarnations. The ledger then refuses what the node has not
 * reported.
 */
export const GONE_NODE_TTL_MS: number = 30 * 24 * 3_600_000;

/**
 * Returns the highest incarnation number that a node can have if it has been gone for `GONE_NODE_TTL_MS` at `now` (milliseconds since the
 * Unix epoch), because a number is at most the clock in seconds.
 */
export function goneNodeFloor(now: number): number {
  return Math.floor((now - GONE_NODE_TTL_MS) / 1_000);
}

/** How many leases a member may exchange in one call. A larger call would delay the calls of other processes in Redis. */
export const MAX_LEASES_PER_EXCHANGE = 200;
/**
 * The period of registration: how long no share is raised after the store was empty or heard from no member for `MAX_LEASE_GAP_MS`, so that
 * each member first reports what the member holds. A member that has just reconnected requests no higher share for the same time.
 */
export const LEASE_REGISTRATION_MS = 3_000;
/** If no member has called for this time, the store itself was away, and the silence of a member says nothing about the member. */
export const MAX_LEASE_GAP_MS = 5_000;
/**
 * After this time without an exchange of a member, the other members assume that the member uses all that it holds. A live member that
 * reaches the store exchanges more often, unless the store is very slow.
 */
export const MAX_LEASE_REPORT_AGE_MS = 2_000;

/** A member that the store has not heard from for this time loses its shares. Time in which the store was away does not count. */
export const MAX_LEASE_SILENCE_MS = 60_000;

/** How long the audit trail keeps suspensions and releases: two years. */
export const AUDIT_RETENTION_MS: number = 731 * 86_400_000;
/** The maximum number of records of the audit trail, so that a rule or a script cannot fill the store. */
export const MAX_AUDIT_RECORDS = 20_000;
/** The maximum number of records that one call of `SuspensionStore.audit` returns. */
export const AUDIT_PAGE_SIZE = 500;
