/**
 * The maximum number of changes in a revision. A larger change is split into several revisions; only the last revision
 * is complete.
 */
export const MAX_CHANGES_PER_REVISION = 500;
/** The size limit of a revision's encoded entries. A revision with a single entry may be larger. */
export const MAX_BYTES_PER_REVISION = 1_000_000;

/** How many revisions are kept; a follower that is further behind reads the complete table. */
export const DEFAULT_KEPT_REVISIONS = 10_000;
/** The minimum of kept bytes of encoded entries; at most twice as many are kept. One Service with many source ranges takes 0.5 MB. */
export const DEFAULT_KEPT_BYTES: number = 32 * 1024 * 1024;

/** How long a heartbeat is valid. A proxy without a heartbeat for this time counts as gone. */
export const HEARTBEAT_TTL_MS = 3_000;
