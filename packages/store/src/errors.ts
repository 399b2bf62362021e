import { UsageError, WeirError } from '@weir/runtime';

export type StoreErrorCode =
  /** No answer, or no connection: try again later. */
  | 'AWAY'
  /** A follower missed revisions: read the whole table again. */
  | 'GAP'
  /** It answers, but refuses us: password, permission, version, eviction policy. */
  | 'REFUSED'
  /** A file of the state directory cannot be used. */
  | 'DAMAGED';

/** The store failing, with what to do in the message. */
export class StoreError extends WeirError<StoreErrorCode> {}

/**
 * For `openRedisStore(…).catch(…)` of a process: a wrong URL or password does not heal by trying on, so a `StoreError` REFUSED
 * becomes a `UsageError`. Throws anything else as it is.
 */
export function rethrowRefusedAsUsage(error: unknown): never {
  throw error instanceof StoreError && error.code === 'REFUSED'
    ? new UsageError(error.message, { cause: error })
    : error;
}
