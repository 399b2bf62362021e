import { type Clock, type Logger, systemClock } from '@weir/runtime';
import type { ConnectionState, Store } from '../contract.ts';
import { StoreError } from '../errors.ts';
import { FLEET_NAME_FORMAT } from '../fleet.ts';
import { DEFAULT_KEPT_BYTES, DEFAULT_KEPT_REVISIONS } from '../limits.ts';
import { RedisConnection } from './connection/redis-connection.ts';
import type { RedisAccess } from './connection/redis-target.ts';
import { targetFor } from './connection/redis-target.ts';
import { keysFor } from './keys.ts';
import { type PrivateKeyAccess, PrivateKeyReader } from './private-key-reader.ts';
import { RedisHeartbeats } from './redis-heartbeats.ts';
import { RedisLeases } from './redis-leases.ts';
import { RedisSuspensions } from './redis-suspensions.ts';
import { RedisTable } from './redis-table.ts';
import { RedisUsage } from './redis-usage.ts';

export interface RedisStoreOptions extends RedisAccess {
  /** The fleet's name in the format `FLEET_NAME_FORMAT`. Several fleets may share one Redis. */
  readonly fleet: string;
  readonly log: Logger;
  /**
   * Whether to read private keys. With `none`, certificates have no private keys and the Redis user needs no permission for the keys.
   * Default: `read`.
   */
  readonly privateKeyAccess?: PrivateKeyAccess;
  readonly clock?: Clock;
  readonly random?: () => number;
  /** The timeout of a call. Default: 2 s. */
  readonly timeoutMs?: number;
  /** The number of revisions that are kept for followers. Tests keep fewer than the default. */
  readonly keptRevisions?: number;
  /** The minimum size in bytes of the kept revisions' entries. Tests keep fewer bytes than the default. */
  readonly keptBytes?: number;
}

/**
 * Opens a store in Redis. Resolves when the first attempt to connect has succeeded or failed; the store's `connection` and
 * `connectionError` show the outcome. Also resolves if Redis is unreachable; the store then keeps trying to connect. Rejects with
 * `StoreError` REFUSED if the options are invalid or Redis refuses the client.
 */
export async function openRedisStore(options: RedisStoreOptions): Promise<Store> {
  const {
    fleet,
    log,
    privateKeyAccess: access = 'read',
    clock = systemClock,
    random = Math.random,
    timeoutMs = 2_000,
    keptRevisions = DEFAULT_KEPT_REVISIONS,
    keptBytes = DEFAULT_KEPT_BYTES,
  } = options;
  if (!FLEET_NAME_FORMAT.pattern.test(fleet)) {
    throw new StoreError('REFUSED', `invalid fleet name "${fleet}"; use ${FLEET_NAME_FORMAT.allowed}`);
  }
  const target = targetFor(options);
  const keys = keysFor(fleet);
  const connection = new RedisConnection({ target, slotKey: keys.meta, log, clock, random, timeoutMs });
  await connection.open();
  const { error } = connection.status;
  if (error?.code === 'REFUSED') {
    await connection.close();
    throw error;
  }
  return {
    table: new RedisTable(connection.callsOf('table'), {
      keys,
      keyReader: new PrivateKeyReader({ keys, access, log, where: target.displayName }),
      retention: { revisions: keptRevisions, bytes: keptBytes },
    }),
    heartbeats: new RedisHeartbeats(connection.callsOf('heartbeats'), keys),
    usage: new RedisUsage(connection.callsOf('usage'), keys, clock),
    suspensions: new RedisSuspensions(connection.callsOf('suspensions'), keys),
    leases: new RedisLeases(connection.callsOf('leases'), keys),
    statistics: connection.statistics,
    get connection(): ConnectionState {
      return connection.status.state;
    },
    get connectionError(): StoreError | undefined {
      return connection.status.error;
    },
    onConnectionChange: (listener) => connection.status.onChange(listener),
    close: async () => connection.close(),
  };
}
