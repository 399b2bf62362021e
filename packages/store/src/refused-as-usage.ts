import { UsageError } from '@weir/runtime';
import { StoreError } from './error.ts';

/**
 * For `openRedisStore(…).catch(…)` of a process: a wrong URL or password does not heal by trying on, so a `StoreError` REFUSED
 * becomes a `UsageError`. Throws anything else as it is.
 */
export function rethrowRefusedAsUsage(error: unknown): never {
  throw error instanceof StoreError && error.code === 'REFUSED'
    ? new UsageError(error.message, { cause: error })
    : error;
}
