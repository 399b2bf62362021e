import { type Logger, UsageError } from '@weir/runtime';
import { MemoryStore, openMemoryStore, openRedisStore, type RedisAccess, type Store, StoreError } from '@weir/store';

export interface StoreOptions {
  /** Undefined for a store in memory. */
  readonly redis?: RedisAccess | undefined;
  /** Directory to which a store in memory writes its data, so that the data survives a restart. */
  readonly state?: string | undefined;
  readonly log: Logger;
}

/** The name of the fleet in Redis and in the console. */
export const STANDALONE_FLEET = 'standalone';

/** Opens the store of this process. Throws `UsageError` if the store cannot be opened. */
export async function openStore({ redis, state, log }: StoreOptions): Promise<Store> {
  const storeLog = log.child({ part: 'store' });
  try {
    if (redis !== undefined) return await openRedis(redis, storeLog);
    return state === undefined ? new MemoryStore() : await openMemoryStore({ directory: state, log: storeLog });
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw new UsageError(`${redis === undefined ? '--state' : '--redis'}: ${error.message}`, { cause: error });
  }
}

/** Opens a store in Redis. Rejects at once if Redis is unreachable, because a user waits for the command. Other Weir processes retry. */
async function openRedis(access: RedisAccess, log: Logger): Promise<Store> {
  const store = await openRedisStore({ ...access, fleet: STANDALONE_FLEET, log });
  if (store.connection === 'ready') return store;
  const { connectionError } = store;
  await store.close();
  throw connectionError ?? new StoreError('AWAY', 'Redis does not answer');
}
