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

/** How long a Service must be gone before its rows in the ledger are added to the row of other Services. */
export const GONE_SERVICE_TTL_MS: number = 7 * 24 * 3_600_000;
