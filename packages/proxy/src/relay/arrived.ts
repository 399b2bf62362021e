import type { Client } from '@weir/model/data-plane';
import type { SocketAddress, TcpStream } from '../tcp/transport.ts';
import type { NegotiatedTls } from '../tls/tls-stream.ts';

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
