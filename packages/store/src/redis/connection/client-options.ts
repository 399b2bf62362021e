import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createConnection, isIP, type NetConnectOpts, Socket } from 'node:net';
import { connect } from 'node:tls';
import { errorMessage, type HostPort } from '@weir/runtime';
import { AbstractConnector, Redis, type RedisOptions } from 'ioredis';
import { StoreError } from '../../errors.ts';
import type { RedisCredentials, RedisTarget } from './redis-target.ts';

export interface ClientOptions extends RedisTlsOptions {
  readonly credentials: RedisCredentials;
  readonly db: number;
  /** Returns the address of the server; called for each connection. */
  readonly findServer: () => Promise<HostPort>;
}

/** Returns ioredis options that queue no commands, send no command twice, and limit each wait to `timeoutMs` milliseconds. */
export function redisOptionsFor(options: ClientOptions, timeoutMs: number): Omit<RedisOptions, 'replyMapping'> {
  const { username, password } = options.credentials;
  return {
    Connector: connectorFor(options.findServer, options),
    db: options.db,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    // Makes ioredis wait for the end of the TLS handshake, which the connector configures.
    ...(options.tls ? { tls: {} } : {}),
    protocol: 2,
    lazyConnect: true,
    connectTimeout: timeoutMs,
    commandTimeout: timeoutMs,
    disconnectTimeout: 100,
    // The caller decides whether to repeat a command without a reply.
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // `RedisConnection` checks more than ioredis's ready check.
    enableReadyCheck: false,
    disableClientInfo: true,
  };
}

export interface ShortLivedClient {
  readonly redis: Redis;
  /** The last error that the connection reported, which explains `thrown`, or else `thrown`. */
  causeOf(thrown: unknown): unknown;
}

/** Creates a client that does not reconnect. The caller calls `redis.connect()` and at the end `redis.disconnect()`. */
export function createShortLivedClient(options: Omit<RedisOptions, 'replyMapping'>): ShortLivedClient {
  const redis = new Redis({ ...options, retryStrategy: () => null });
  let lastError: unknown;
  redis.on('error', (error) => {
    lastError = error;
  });
  return { redis, causeOf: (thrown) => lastError ?? thrown };
}

export type RedisTlsOptions = Pick<RedisTarget, 'tls' | 'ca'>;

/**
 * Returns an ioredis connector that finds the server and reads the CA file for each connection. The connectors of ioredis for Sentinel and
 * Cluster queue and repeat commands. ioredis instantiates the class itself and requires a subclass of `AbstractConnector`.
 */
export function connectorFor(
  findServer: () => Promise<HostPort>,
  tlsOptions: RedisTlsOptions,
): NonNullable<RedisOptions['Connector']> {
  return class extends AbstractConnector {
    constructor(options: unknown) {
      super((options as RedisOptions & { readonly disconnectTimeout: number }).disconnectTimeout);
    }

    async connect(): Promise<Socket> {
      this.connecting = true;
      delete this.firstError;
      const stream = await openSocket(findServer, tlsOptions).catch((thrown: Error) => {
        // ioredis gives up if a connector rejects, but retries after a stream that has failed.
        this.firstError = thrown;
        return new Socket().destroy();
      });
      if (!this.connecting) {
        stream.destroy();
        throw new Error('Connection is closed.');
      }
      stream.once('error', (error) => {
        this.firstError = error;
      });
      this.stream = stream;
      return stream;
    }
  };
}

async function openSocket(findServer: () => Promise<HostPort>, { tls, ca }: RedisTlsOptions): Promise<Socket> {
  const server: HostPort & NetConnectOpts = await findServer();
  if (!tls) return createConnection(server);
  return connect({
    ...server,
    // SNI must not be an IP address (RFC 6066, section 3). Node verifies the certificate's name in both cases.
    ...(isIP(server.host) === 0 ? { servername: server.host } : {}),
    ...(ca === undefined ? {} : { ca: [...(await readAuthorities(ca))] }),
  });
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Reads the CA certificates of a PEM file. Throws REFUSED if the file is missing, has no certificate or has an invalid certificate:
 * OpenSSL would ignore an invalid certificate silently and then refuse every server.
 */
export async function readAuthorities(path: string): Promise<readonly string[]> {
  const refused = (reason: string, cause?: unknown): StoreError =>
    new StoreError(
      'REFUSED',
      `the CA file of Redis ${path} ${reason}; set WEIR_REDIS_CA to a file of PEM certificates`,
      {
        cause,
      },
    );
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    throw refused(`cannot be read (${errorMessage(cause)})`, cause);
  }
  const certificates = text.match(PEM_CERTIFICATE) ?? [];
  if (certificates.length === 0) throw refused('contains no certificate');
  for (const certificate of certificates) {
    try {
      new X509Certificate(certificate);
    } catch (cause) {
      throw refused(`contains an invalid certificate (${errorMessage(cause)})`, cause);
    }
  }
  return certificates;
}
