import { UsageError, WeirError } from '@weir/runtime';

export type StoreErrorCode =
  /** The store is unreachable: no connection, or no response in time. Retry later. */
  | 'AWAY'
  /** A follower missed revisions and must read the complete table again. */
  | 'GAP'
  /** The store responds but refuses the client, because of the password, a permission, the Redis version or the eviction policy. */
  | 'REFUSED'
  /** The user of the store lacks a right that only this call needs. Other calls work. */
  | 'FORBIDDEN'
  /** A file of the state directory is invalid or cannot be read or written. */
  | 'DAMAGED';

/** A failure of the store. The message says what the user can do. */
export class StoreError extends WeirError<StoreErrorCode> {}

/**
 * Rethrows an error of `openRedisStore`. Rethrows a `StoreError` REFUSED as a `UsageError`, because a retry cannot fix a wrong URL or
 * password; rethrows any other error unchanged.
 */
export function rethrowRefusedAsUsage(error: unknown): never {
  throw error instanceof StoreError && error.code === 'REFUSED'
    ? new UsageError(error.message, { cause: error })
    : error;
}
