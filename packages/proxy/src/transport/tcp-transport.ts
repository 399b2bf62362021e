// The interface to TCP. Each implementation passes `test/transport/tcp/transport.test.ts`. An implementation
// allocates no closure or timer per chunk. It queues what the kernel does not take, without a limit: a writer must look
// at the returned number of queued bytes and stop reading its source.
import type { Socket } from 'node:net';

/** Accept queue of each listen socket; the kernel limits it to `net.core.somaxconn`. */
export const LISTEN_BACKLOG = 4_096;

export interface TcpTransport {
  /** Binds and listens. Exactly one of `onListening` and `onFailed` is called after `listen` has returned. */
  listen(at: TcpListenOptions, events: TcpListenSocketEvents): TcpListenSocket;
  /** `address` is an IP literal; nothing is resolved. The stream does not read before `readStart`. */
  connect(to: SocketAddress, events: StreamEvents): TcpStream;
}

export interface SocketAddress {
  readonly address: string;
  readonly port: number;
}

export interface TcpListenOptions extends SocketAddress {
  /** SO_REUSEPORT: several sockets of this user, of one or more processes, may share the port. */
  readonly reusePort: boolean;
}

export interface TcpListenSocketEvents {
  onListening(): void;
  /** The socket is closed. `code` is an errno name such as EADDRINUSE. */
  onFailed(code: string): void;
  /** The stream does not read or call back before `accept`. The handler must accept or reset it before it returns. */
  onConnection(stream: AcceptedStream): void;
  /** A connection could not be accepted (EMFILE, for example); the socket goes on listening. */
  onAcceptError(code: string): void;
}

export interface TcpListenSocket {
  /** Releases the port before it returns. Accepted streams stay open. */
  close(): void;
}

/**
 * The owner of a stream implements these. An exception from one of the first four is passed to `onThrow` and never
 * reaches the event loop, where it would end the worker and its other connections.
 */
export interface StreamEvents {
  /** Only for streams of `connect`. */
  onConnect(stream: TcpStream): void;
  /** `bytes` are valid until the handler returns: the next read of any stream may overwrite them. */
  onData(stream: TcpStream, bytes: Uint8Array): void;
  /** The peer has sent FIN. Writing is still possible. */
  onEnd(stream: TcpStream): void;
  /** The kernel has taken all queued bytes. */
  onDrain(stream: TcpStream): void;
  /**
   * The last call, made once: after both FINs, a reset or a failure. `code` is an errno name; undefined without
   * failure.
   */
  onClose(stream: TcpStream, code: string | undefined): void;
  onThrow(stream: TcpStream, thrown: unknown): void;
}

export interface TcpStream {
  /** The peer's address; empty if the connection ended before it was read. */
  readonly remoteAddress: string;
  /** The peer's port; 0 if the connection ended before it was read. */
  readonly remotePort: number;
  /** Written bytes that the kernel has not taken. After a failure: those that it never took. */
  readonly queuedBytes: number;
  /** A longer `write` would block the worker for too long, for example to encrypt. Absent if there is no such limit. */
  readonly maxWriteBytes?: number;
  /** Makes `events` the owner of a stream of `onConnection`. A later call, also from an event, changes the owner. */
  accept(events: StreamEvents): void;
  /**
   * Limits the bytes of each read, for rate-limited connections. To be called before the first read. Absent if
   * unsupported.
   */
  limitReadBytes?(bytes: number): void;
  readStart(): void;
  /** `onData` is not called after this has returned, until `readStart`. */
  readStop(): void;
  /** Copies and queues what the kernel does not take at once. Returns `queuedBytes`; if not 0, `onDrain` follows. */
  write(bytes: Uint8Array): number;
  /** Sends FIN after the queued bytes. */
  shutdown(): void;
  /** Sends RST at once; queued bytes, also those in the kernel, are discarded. */
  reset(): void;
}

/** A stream of `onConnection`. */
export interface AcceptedStream extends TcpStream {
  /**
   * Converts the connection into a socket for a TLSSocket, which reads `unread` first. Must be called before the first
   * write. Afterwards the stream does nothing and calls no handler, not even `onClose`.
   */
  detachSocket(unread: Uint8Array): Socket;
}
