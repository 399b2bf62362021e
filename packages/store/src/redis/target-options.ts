import type { HostPort } from '@weir/runtime';
import type { RedisOptions } from 'ioredis';
import { connectorFor, type RedisTlsOptions } from './connector.ts';
import type { RedisCredentials } from './target.ts';

export interface ClientOptions extends RedisTlsOptions {
  readonly credentials: RedisCredentials;
  readonly db: number;
  /** Asked for each connection. */
  readonly findServer: () => Promise<HostPort>;
}

/**
 * How ioredis is to talk to a Redis, for whatever: nothing is queued, nothing is sent twice, and every wait ends after
 * `timeoutMs` (milliseconds).
 */
export function redisOptionsFor(way: ClientOptions, timeoutMs: number): Omit<RedisOptions, 'replyMapping'> {
  const { username, password } = way.credentials;
  return {
    Connector: connectorFor(way.findServer, way),
    db: way.db,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    // it waits for the end of the handshake then; how it goes is the connector's
    ...(way.tls ? { tls: {} } : {}),
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
