/** A larger change goes in several revisions, of which only the last makes the table whole. */
export const MAX_CHANGES_PER_REVISION = 500;
/** Of encoded entries; one entry alone may be larger. */
export const MAX_BYTES_PER_REVISION = 1_000_000;

/** A follower that is further behind reads the whole table. */
export const DEFAULT_KEPT_REVISIONS = 10_000;
/** Of the entries of these revisions, at least; at most twice as many: one Service with all the source ranges that it may have weighs half a megabyte. */
export const DEFAULT_KEPT_BYTES: number = 32 * 1024 * 1024;

/** A proxy counts as gone when it has not been heard for so long. */
export const HEARTBEAT_TTL_MS = 3_000;
