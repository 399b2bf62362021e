import { randomBytes } from 'node:crypto';
import type { Client, ServiceSettings } from '@weir/model/data-plane';
import { writeProxyHeader } from '../protocol/write-proxy-header.ts';
import type { SocketAddress, TcpStream } from '../transport/tcp-transport.ts';
import type { NegotiatedTls } from '../transport/tls/tls-stream.ts';

/** What is known of a connection when it is let in. */
export interface DownstreamInfo {
  readonly client: Client;
  /** Where the client connected to. */
  readonly destination: SocketAddress;
  /** Of its ClientHello; null: not looked for, or none. */
  readonly serverName: string | null;
  /** Whether `prelude` begins with a ClientHello. */
  readonly hasClientHello: boolean;
  /** TLS has ended here, by this. */
  readonly tls?: NegotiatedTls;
  /** Read from the client and counted already, and to be sent to the endpoint first. */
  readonly prereadBytes: Uint8Array;
}

const NO_BYTES = new Uint8Array(0);

/** Of a stream from which nothing was read. */
export function downstreamInfoOf(destination: SocketAddress, stream: TcpStream): DownstreamInfo {
  return {
    client: new StreamClient(stream),
    destination,
    serverName: null,
    hasClientHello: false,
    prereadBytes: NO_BYTES,
  };
}

/** The peer of a stream. To ask for it is a system call, which most connections need not pay for. */
class StreamClient implements Client {
  readonly #stream: TcpStream;

  constructor(stream: TcpStream) {
    this.#stream = stream;
  }

  get address(): string {
    return this.#stream.remoteAddress;
  }

  get port(): number {
    return this.#stream.remotePort;
  }
}

/** As the specification allows (2.2.5), and enough never to repeat. */
const UNIQUE_ID_BYTES = 16;

/** What the endpoint gets before anything is relayed: who the client is, if it wants to know, and what was read already. */
export function upstreamPreambleFor({ proxyProtocol }: ServiceSettings, arrived: DownstreamInfo): Uint8Array {
  const { client, destination, serverName, tls, prereadBytes } = arrived;
  if (proxyProtocol === null) return prereadBytes;
  const header = writeProxyHeader(proxyProtocol, {
    source: { address: client.address, port: client.port },
    destination: { address: destination.address, port: destination.port },
    ...(proxyProtocol === 'v2' ? { uniqueId: randomBytes(UNIQUE_ID_BYTES) } : {}),
    ...(serverName === null ? {} : { authority: serverName }),
    ...(tls === undefined ? {} : { alpn: tls.alpn ?? undefined, tls }),
  });
  return prereadBytes.length === 0 ? header : Buffer.concat([header, prereadBytes]);
}
