import { randomBytes } from 'node:crypto';
import type { Client, ServiceSettings } from '@weir/model/data-plane';
import { writeProxyHeader } from '../protocol/write-proxy-header.ts';
import type { SocketAddress, TcpStream } from '../transport/tcp-transport.ts';
import type { NegotiatedTls } from '../transport/tls/tls-stream.ts';

/** The properties of a client's connection that are known before its session starts. */
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

/** Returns the info of a connection from which nothing was read yet. */
export function downstreamInfoOf(destination: SocketAddress, stream: TcpStream): DownstreamInfo {
  return {
    client: new StreamClient(stream),
    destination,
    serverName: null,
    hasClientHello: false,
    prereadBytes: NO_BYTES,
  };
}

/** A client whose address is read only if it is needed, because reading it is a system call. */
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

/**
 * The length of a connection's unique id, long enough never to repeat. The PROXY protocol allows up to 128 bytes
 * (2.2.5).
 */
const UNIQUE_ID_BYTES = 16;

/**
 * Returns the bytes that the endpoint receives first: a PROXY header if the Service asks for one, then the preread
 * bytes.
 */
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
