import { createConnection, isIP, type NetConnectOpts, Socket } from 'node:net';
import { connect } from 'node:tls';
import type { HostPort } from '@weir/runtime';
import { AbstractConnector, type RedisOptions } from 'ioredis';
import { readAuthorities } from './authorities.ts';
import type { RedisTarget } from './target.ts';

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
