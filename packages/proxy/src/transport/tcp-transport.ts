// The interface to TCP. Each implementation passes `test/transport/tcp/transport.test.ts`. An implementation
// allocates no closure or timer per chunk. It queues what the kernel does not take, without a limit: a writer must look
// at the returned number of queued bytes and stop reading its source.
import type { Socket } from 'node:net';

/** The length of the accept queue of each listen socket. The kernel limits it to `net.core.somaxconn`. */
export const LISTEN_BACKLOG = 4_096;

export interface TcpTransport {
  /** Binds and listens. Exactly one of `onListening` and `onFailed` is called after `listen` has returned. */
  listen(at: TcpListenOptions, events: TcpListenSocketEvents): TcpListenSocket;
  /**
   * Connects to an address. It must be an IP literal, because nothing is resolved. The stream does not read before
   * `readStart`.
   */
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
  /** Called when listening has failed; the socket is closed. `code` is an errno name such as EADDRINUSE. */
  onFailed(code: string): void;
  /**
   * Called for a new connection. Its stream does not read or call back before `accept`. The handler must accept or
   * reset it before it returns.
   */
  onConnection(stream: AcceptedStream): void;
  /** Called when a connection could not be accepted (EMFILE, for example). The socket goes on listening. */
  onAcceptError(code: string): void;
}

export interface TcpListenSocket {
  /** Closes the socket and releases the port before it returns. Accepted streams stay open. */
  close(): void;
}

/**
 * The events of a stream, which its owner implements. An exception from one of the first four is passed to `onThrow`.
 * In the event loop it would end the worker and its other connections.
 */
export interface StreamEvents {
  /** Called when a stream of `connect` is connected. */
  onConnect(stream: TcpStream): void;
  /**
   * Called with bytes of the peer. `bytes` are valid until the handler returns: the next read of any stream may
   * overwrite them.
   */
  onData(stream: TcpStream, bytes: Uint8Array): void;
  /** Called when the peer has sent FIN. Writing is still possible. */
  onEnd(stream: TcpStream): void;
  /** Called when the kernel has taken all queued bytes. */
  onDrain(stream: TcpStream): void;
  /**
   * Called once, as the last event, after both FINs, a reset or a failure. `code` is an errno name, or undefined
   * without a failure.
   */
  onClose(stream: TcpStream, code: string | undefined): void;
  onThrow(stream: TcpStream, thrown: unknown): void;
}

export interface TcpStream {
  /** The peer's address; empty if the connection ended before it was read. */
  readonly remoteAddress: string;
  /** The peer's port; 0 if the connection ended before it was read. */
  readonly remotePort: number;
  /** The number of written bytes that the kernel has not taken, or after a failure, that it never took. */
  readonly queuedBytes: number;
  /**
   * The maximum length of one `write`. A longer write would block the worker for too long, for example to encrypt.
   * Absent if there is no such limit.
   */
  readonly maxWriteBytes?: number;
  /** Makes `events` the owner of a stream of `onConnection`. A later call, also from an event, changes the owner. */
  accept(events: StreamEvents): void;
  /**
   * Limits the bytes of each read, for rate-limited connections. To be called before the first read. Absent if
   * unsupported.
   */
  limitReadBytes?(bytes: number): void;
  readStart(): void;
  /** Stops reading. After it has returned, `onData` is not called until `readStart`. */
  readStop(): void;
  /**
   * Writes bytes. Copies and queues those that the kernel does not take at once. Returns `queuedBytes`; if that is not
   * 0, `onDrain` follows.
   */
  write(bytes: Uint8Array): number;
  /** Sends FIN after the queued bytes. */
  shutdown(): void;
  /** Sends RST at once; queued bytes, also those in the kernel, are discarded. */
  reset(): void;
}

/** A stream that `onConnection` passes on. */
export interface AcceptedStream extends TcpStream {
  /**
   * Converts the connection into a socket for a TLSSocket, which reads `unread` first. Must be called before the first
   * write. Afterwards the stream does nothing and calls no handler, not even `onClose`.
   */
  detachSocket(unread: Uint8Array): Socket;
}
