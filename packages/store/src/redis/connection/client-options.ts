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
  /** Returns the address of the server. Called for each connection. */
  readonly findServer: () => Promise<HostPort>;
}

/** Returns options with which ioredis queues no commands, sends no command twice, and limits each wait to `timeoutMs` milliseconds. */
export function redisOptionsFor(options: ClientOptions, timeoutMs: number): Omit<RedisOptions, 'replyMapping'> {
  const { username, password } = options.credentials;
  return {
    Connector: connectorFor(options.findServer, options),
    db: options.db,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    // Makes ioredis wait for the end of the TLS handshake. The TLS options themselves are set by the connector.
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
    // Disabled, because `RedisConnection` checks more than ioredis's ready check.
    enableReadyCheck: false,
    disableClientInfo: true,
  };
}

export interface ShortLivedClient {
  readonly redis: Redis;
  /**
   * Returns the last error event of the connection, because it explains why a command threw `thrown`. Returns `thrown` if there was no
   * error event.
   */
  causeOf(thrown: unknown): unknown;
}

/** Creates a client that does not reconnect. The caller must call `redis.connect()`, and `redis.disconnect()` at the end. */
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
 * Returns an ioredis connector that finds the server and reads the CA file for each connection. Replaces ioredis's own support of Sentinel
 * and Cluster, because that support queues and repeats commands. ioredis instantiates the class itself and requires a subclass of
 * `AbstractConnector`.
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
        // Returns a failed stream, because ioredis gives up if a connector rejects, but retries after a stream has failed.
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
    // SNI must not be an IP address (RFC 6066, section 3). Node verifies the certificate's name with and without SNI.
    ...(isIP(server.host) === 0 ? { servername: server.host } : {}),
    ...(ca === undefined ? {} : { ca: [...(await readAuthorities(ca))] }),
  });
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Reads the CA certificates of a PEM file. Throws REFUSED if the file is missing, has no certificate or has an invalid certificate. OpenSSL
 * would silently ignore an invalid certificate and refuse every server.
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
