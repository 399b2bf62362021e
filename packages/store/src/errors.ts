import { UsageError, WeirError } from '@weir/runtime';

export type StoreErrorCode =
  /** The store is unreachable: no connection, or no response in time. Retry later. */
  | 'AWAY'
  /** A follower missed revisions: read the complete table again. */
  | 'GAP'
  /** The store responds but refuses the client: password, permission, version, eviction policy. */
  | 'REFUSED'
  /** A file of the state directory is invalid or cannot be read or written. */
  | 'DAMAGED';

/** A failure of the store. The message says what the user can do. */
export class StoreError extends WeirError<StoreErrorCode> {}

/**
 * Rethrows an error of `openRedisStore`: a `StoreError` REFUSED becomes a `UsageError`, because a retry cannot fix a wrong URL or
 * password. Any other error is rethrown unchanged.
 */
export function rethrowRefusedAsUsage(error: unknown): never {
  throw error instanceof StoreError && error.code === 'REFUSED'
    ? new UsageError(error.message, { cause: error })
    : error;
}
