import { randomBytes } from 'node:crypto';
import type { Client, ServiceSettings } from '@weir/model/data-plane';
import { writeProxyHeader } from '../protocol/write-proxy-header.ts';
import type { SocketAddress, TcpStream } from '../transport/tcp-transport.ts';
import type { NegotiatedTls } from '../transport/tls/tls-stream.ts';

/** What is known about a client's connection before its session starts. */
export interface DownstreamInfo {
  readonly client: Client;
  /** The address to which the client connected. */
  readonly destination: SocketAddress;
  /** The server name of the ClientHello. Null if no ClientHello was read, or it has no server name. */
  readonly serverName: string | null;
  readonly hasClientHello: boolean;
  /** Set if TLS was terminated here. */
  readonly tls?: NegotiatedTls;
  /** Bytes of the client that are counted already, and must be sent to the endpoint first. */
  readonly prereadBytes: Uint8Array;
}

const NO_BYTES = new Uint8Array(0);

/** The info of a connection before anything is read from it. */
export function downstreamInfoOf(destination: SocketAddress, stream: TcpStream): DownstreamInfo {
  return {
    client: new StreamClient(stream),
    destination,
    serverName: null,
    hasClientHello: false,
    prereadBytes: NO_BYTES,
  };
}

/** Reads the address of the peer only if it is needed, because that is a system call. */
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

/** Long enough never to repeat. The PROXY protocol allows up to 128 bytes (2.2.5). */
const UNIQUE_ID_BYTES = 16;

/** The bytes that the endpoint receives first: a PROXY header if the Service asks for one, then the preread bytes. */
export function upstreamPreambleFor({ proxyProtocol }: ServiceSettings, info: DownstreamInfo): Uint8Array {
  const { client, destination, serverName, tls, prereadBytes } = info;
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
