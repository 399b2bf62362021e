// The one door to TCP. What stands behind it (bare handles, or public `net`) is held to
// `test/tcp/transport-contract.ts`. Nothing here allocates a closure or a timer per chunk, and nothing buffers without a
// bound: who writes looks at what is queued and stops reading its source.
import type { Socket } from 'node:net';

/** Of every listener; the kernel cuts it to `net.core.somaxconn`. */
export const LISTEN_BACKLOG = 4_096;

export interface TcpTransport {
  /** Binds and listens. Exactly one of `onListening` and `onFailed` follows. */
  listen(at: TcpListenOptions, events: TcpListenSocketEvents): TcpListenSocket;
  /** `address` is an IP literal: no look-up. The stream does not read before `readStart`. */
  connect(to: SocketAddress, events: StreamEvents): TcpStream;
}

export interface SocketAddress {
  readonly address: string;
  readonly port: number;
}

export interface TcpListenOptions extends SocketAddress {
  /** Several sockets, of this process or of another of the same user, may share the port. */
  readonly reusePort: boolean;
}

export interface TcpListenSocketEvents {
  onListening(): void;
  /** `code` as in errno, such as EADDRINUSE. The listener is closed. */
  onFailed(code: string): void;
  /** A stream that reads and tells nothing until `accept`; it must be accepted or reset before the call returns. */
  onConnection(stream: AcceptedStream): void;
  /** One connection could not be accepted (EMFILE …); the listener goes on. */
  onAcceptError(code: string): void;
}

export interface TcpListenSocket {
  /** Releases the port before it returns. Accepted streams are not touched. */
  close(): void;
}

/**
 * What a stream tells its owner. A throw in one of the first four ends in `onThrow`, never in the event loop: one
 * connection's mistake must not end the worker.
 */
export interface StreamEvents {
  /** Only after `connect`. */
  onConnect(stream: TcpStream): void;
  /** `bytes` are valid until the call returns: the next read of any stream may overwrite them. */
  onData(stream: TcpStream, bytes: Uint8Array): void;
  /** The peer's FIN. Writing goes on. */
  onEnd(stream: TcpStream): void;
  /** The kernel has taken all that was queued. */
  onDrain(stream: TcpStream): void;
  /** Once, and the last: after both FINs, a reset, a failure. `code` as in errno; undefined when nothing failed. */
  onClose(stream: TcpStream, code: string | undefined): void;
  onThrow(stream: TcpStream, thrown: unknown): void;
}

export interface TcpStream {
  /** The peer's address; empty when it is gone already. */
  readonly remoteAddress: string;
  /** The peer's port; 0 when it is gone already. */
  readonly remotePort: number;
  /** Bytes written here that the kernel has not taken. */
  readonly queuedBytes: number;
  /** More than this in one `write` would hold up all others; absent: it takes anything quickly. */
  readonly maxWriteBytes?: number;
  /** Takes over a stream of `onConnection`; called again, also by an event of the stream, it hands the stream to another owner. */
  accept(events: StreamEvents): void;
  /** Before the first read: none takes more. For those whose bytes per second are limited; absent where reads cannot be told. */
  limitReadBytes?(bytes: number): void;
  readStart(): void;
  /** No `onData` after it returns, until `readStart`. */
  readStop(): void;
  /** Copies what the kernel does not take at once. Returns `queued`; not 0: `onDrain` follows. */
  write(bytes: Uint8Array): number;
  /** FIN, after what is queued. */
  shutdown(): void;
  /** RST, now: what is queued here and in the kernel is discarded. */
  reset(): void;
}

/** As a listener gives it. */
export interface AcceptedStream extends TcpStream {
  /**
   * Gives the connection away as the socket below a TLSSocket, which has `unread` to be read first; nobody else may read from it.
   * Only before anything was written. From then on the stream does and tells nothing, also not of the end.
   */
  detachSocket(unread: Uint8Array): Socket;
}
