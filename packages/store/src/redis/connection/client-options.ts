import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createConnection, isIP, type NetConnectOpts, Socket } from 'node:net';
import { connect } from 'node:tls';
import { errorMessage, type HostPort } from '@weir/runtime';
import { AbstractConnector, type RedisOptions } from 'ioredis';
import { StoreError } from '../../errors.ts';
import type { RedisCredentials, RedisTarget } from './redis-target.ts';

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

export type RedisTlsOptions = Pick<RedisTarget, 'tls' | 'ca'>;

/**
 * How ioredis gets to the server, each time anew: to where it is then, with the authorities as their file has them then. Its own ways
 * for Sentinel and Cluster are others, with queues and repetitions of their own. A class, because ioredis makes it itself, and of its
 * own kind, because it asks for that.
 */
export function connectorFor(
  find: () => Promise<HostPort>,
  encryption: RedisTlsOptions,
): NonNullable<RedisOptions['Connector']> {
  return class extends AbstractConnector {
    constructor(options: unknown) {
      super((options as RedisOptions & { readonly disconnectTimeout: number }).disconnectTimeout);
    }

    async connect(): Promise<Socket> {
      this.connecting = true;
      delete this.firstError;
      const stream = await openSocket(find, encryption).catch((thrown: Error) => {
        // a connector that rejects is given up; a stream that has failed is followed by another one
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

async function openSocket(find: () => Promise<HostPort>, { tls, ca }: RedisTlsOptions): Promise<Socket> {
  const at: HostPort & NetConnectOpts = await find();
  if (!tls) return createConnection(at);
  return connect({
    ...at,
    // The name is verified either way; an address is no name to ask for (RFC 6066, section 3).
    ...(isIP(at.host) === 0 ? { servername: at.host } : {}),
    ...(ca === undefined ? {} : { ca: [...(await readAuthorities(ca))] }),
  });
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * The certificates of authorities in a PEM file, as text. Throws REFUSED when there is no file or no certificate in it, or one that cannot be
 * read: OpenSSL would pass over it in silence, and every server would then seem to be a stranger.
 */
export async function readAuthorities(path: string): Promise<readonly string[]> {
  const refused = (why: string, cause?: unknown): StoreError =>
    new StoreError(
      'REFUSED',
      `the authority of Redis in ${path} ${why}; WEIR_REDIS_CA names a file of PEM certificates`,
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
  if (certificates.length === 0) throw refused('is missing: no certificate is in the file');
  for (const certificate of certificates) {
    try {
      new X509Certificate(certificate);
    } catch (cause) {
      throw refused(`is damaged (${errorMessage(cause)})`, cause);
    }
  }
  return certificates;
}
