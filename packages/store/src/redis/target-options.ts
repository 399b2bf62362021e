import { isIP } from 'node:net';
import type { RedisOptions } from 'ioredis';
import type { RedisTarget } from './target.ts';

/**
 * How ioredis is to talk to a Redis, for whatever: nothing is queued, nothing is sent twice, and every wait ends after
 * `timeoutMs` (milliseconds).
 */
export function optionsFor(
  { host, port, username, password, db, tls }: RedisTarget,
  timeoutMs: number,
): Omit<RedisOptions, 'replyMapping'> {
  return {
    host,
    port,
    db,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(tls ? { tls: isIP(host) === 0 ? { servername: host } : {} } : {}),
    protocol: 2,
    lazyConnect: true,
    connectTimeout: timeoutMs,
    commandTimeout: timeoutMs,
    disconnectTimeout: 100,
    // what was sent and not answered is decided by the caller
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // whoever connects asks more
    enableReadyCheck: false,
    disableClientInfo: true,
  };
}
