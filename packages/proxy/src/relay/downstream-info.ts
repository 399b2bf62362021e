import { randomBytes } from 'node:crypto';
import type { Client, ServiceSettings } from '@weir/model/data-plane';
import type { Http2Connection } from '../http/h2/connection.ts';
import { writeProxyHeader } from '../protocol/write-proxy-header.ts';
import type { SocketAddress, TcpStream } from '../transport/tcp-transport.ts';
import type { NegotiatedTls } from '../transport/tls/tls-server.ts';

/** The properties of a client's connection that are known before the session starts. */
export interface DownstreamInfo {
  readonly client: Client;
  /** The address to which the client connected. */
  readonly destination: SocketAddress;
  /** The server name of the ClientHello. Null if no ClientHello was read, or if the ClientHello has no server name. */
  readonly serverName: string | null;
  readonly hasClientHello: boolean;
  /** The result of the TLS handshake. Absent if Weir did not terminate TLS. */
  readonly tls?: NegotiatedTls;
  /**
   * Bytes that were read from the client before the session starts. They must be sent to the endpoint first. They are
   * counted, except `uncountedBytes`.
   */
  readonly prereadBytes: Uint8Array;
  /** How many of the last bytes that were read from the client are not counted yet; absent for none. */
  readonly uncountedBytes?: number;
  /** Whether an earlier session of the same Service has counted the connection as open; absent for no. */
  readonly isAlreadyActive?: boolean;
  /** When the connection was accepted, in milliseconds of `Turns.nowMs`; absent if the session starts at once. */
  readonly acceptedAt?: number;
  /** The HTTP/2 connection, if it has begun before the session. Its first request comes next. */
  readonly http2?: Http2Connection;
}

const NO_BYTES = new Uint8Array(0);

/** Returns the info of a connection from which nothing has been read yet. */
export function downstreamInfoOf(destination: SocketAddress, stream: TcpStream): DownstreamInfo {
  return {
    client: new StreamClient(stream),
    destination,
    serverName: null,
    hasClientHello: false,
    prereadBytes: NO_BYTES,
  };
}

/** A client whose address is read only when it is needed, because reading the address is a system call. */
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
 * The length of a connection's unique id. Random ids of this length practically never repeat. The PROXY protocol allows
 * up to 128 bytes (section 2.2.5).
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
