import { type Logger, UsageError } from '@weir/runtime';
import { MemoryStore, openMemoryStore, openRedisStore, type RedisAccess, type Store, StoreError } from '@weir/store';

export interface StoreOptions {
  /** A real Redis as the bus. */
  readonly redis?: RedisAccess | undefined;
  /** Where memory survives a restart. */
  readonly state?: string | undefined;
  readonly log: Logger;
}

/** The name of the fleet in Redis and on the page. */
export const STANDALONE_FLEET = 'standalone';

/** The bus of this process. What keeps it from beginning is a `UsageError`. */
export async function openStore({ redis, state, log }: StoreOptions): Promise<Store> {
  const own = log.child({ part: 'store' });
  try {
    if (redis !== undefined) return await openRedis(redis, own);
    return state === undefined ? new MemoryStore() : await openMemoryStore({ directory: state, log: own });
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw new UsageError(`${redis === undefined ? '--state' : '--redis'}: ${error.message}`, { cause: error });
  }
}

/** Somebody sits in front of it: a Redis that is not there is told now, instead of being waited for. */
async function openRedis(access: RedisAccess, log: Logger): Promise<Store> {
  const store = await openRedisStore({ ...access, fleet: STANDALONE_FLEET, log });
  if (store.connection === 'ready') return store;
  const { connectionError } = store;
  await store.close();
  throw connectionError ?? new StoreError('AWAY', 'Redis does not answer');
}
