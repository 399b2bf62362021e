// The interface to TCP. Each implementation passes `test/transport/tcp/transport.test.ts`. No implementation allocates
// a closure or a timer per chunk. `write` queues the bytes that the kernel does not take. The queue has no limit, so a
// caller must check the returned number of queued bytes and stop reading the stream from which it forwards bytes.
import type { Socket } from 'node:net';
import type { TlsServer } from './tls/tls-server.ts';

/** The maximum length of a listen socket's accept queue. The kernel caps the length at `net.core.somaxconn`. */
export const LISTEN_BACKLOG = 4_096;

export interface TcpTransport {
  /**
   * Opens a listen socket. Exactly one of `onListening` and `onFailed` is called after `listen` has returned, unless the
   * caller closes the socket first.
   */
  listen(at: TcpListenOptions, events: TcpListenSocketEvents): TcpListenSocket;
  /**
   * Connects to `to.address`, which must be an IP literal because no name is resolved. The stream reads nothing before
   * `readStart`. With another `window` than `full`, the kernel also receives fewer bytes before they are read.
   */
  connect(to: SocketAddress, events: StreamEvents, window?: Window): DetachableStream;
  readonly turns: Turns;
  /** Memory of this thread whose bytes `TcpStream.write` sends without a copy. Undefined if the transport has none. */
  readonly writeMemory?: WriteMemory;
  /** TLS for accepted streams; absent for `nodeTlsServer`. */
  readonly tlsServer?: TlsServer | undefined;
}

export interface WriteMemory {
  readonly bytes: Uint8Array;
  /** Returns a view of the first `length` bytes. Two calls may return the same view. */
  view(length: number): Uint8Array;
}

/** The turns of the event loop that reads the sockets of a transport. */
export interface Turns {
  /** The number of the current turn. */
  readonly current: number;
  /** The time in milliseconds of a monotonic clock. May be as old as the events that are being handled. */
  readonly nowMs: number;
  /** Calls `task` in the next turn. */
  runInNext(task: () => void): void;
  /** Calls `task` when the events of the current turn are handled, or in the next turn if no event is being handled. */
  runAtEnd(task: () => void): void;
}

/** How many bytes a connection may buffer. A smaller window takes less memory, and more CPU time per byte. */
export type Window = 'full' | 'reduced' | 'small';

export interface SocketAddress {
  readonly address: string;
  readonly port: number;
}

export interface TcpListenOptions extends SocketAddress {
  /** Sets SO_REUSEPORT: several sockets of the same user may share the port, even across processes. */
  readonly reusePort: boolean;
}

export interface TcpListenSocketEvents {
  onListening(): void;
  /** Called when listening has failed; the socket is closed. `code` is an errno name such as EADDRINUSE. */
  onFailed(code: string): void;
  /**
   * Called for a new connection. The stream reads nothing and calls no handler before `accept`. The handler must call
   * `accept` or `reset` before the handler returns.
   */
  onConnection(stream: AcceptedStream): void;
  /** Called if a connection could not be accepted, for example with EMFILE. The socket continues to listen. */
  onAcceptError(code: string): void;
}

export interface TcpListenSocket {
  /** Closes the socket. The port is free when `close` returns. Accepted streams stay open. */
  close(): void;
}

/**
 * The event handlers of a stream, implemented by the stream's owner. If `onConnect`, `onData`, `onEnd` or `onDrain`
 * throws, the stream passes the exception to `onThrow`. If the exception reached the event loop, it would end the
 * worker and all of its connections.
 */
export interface StreamEvents {
  /**
   * Called when a stream from `connect` is connected, or when the TLS handshake of a stream from `startTls` has
   * succeeded.
   */
  onConnect(stream: TcpStream): void;
  /**
   * Called with bytes from the peer. `bytes` are valid only until the handler returns, because the next read of any
   * stream may overwrite them.
   */
  onData(stream: TcpStream, bytes: Uint8Array): void;
  /** Called when the peer has sent FIN. Writing is still possible. */
  onEnd(stream: TcpStream): void;
  /** Called when the kernel has taken all queued bytes, and after each `write` with another window than `full`. */
  onDrain(stream: TcpStream): void;
  /**
   * Called once, after both FINs, a reset or a failure. No handler is called afterwards. `code` is an error code such
   * as ECONNRESET, or undefined if the stream did not fail.
   */
  onClose(stream: TcpStream, code: string | undefined): void;
  onThrow(stream: TcpStream, thrown: unknown): void;
}

export interface TcpStream {
  /** The peer's address, or an empty string if the connection ended before the address or port was first read. */
  readonly remoteAddress: string;
  /** The peer's port, or 0 if the connection ended before the address or port was first read. */
  readonly remotePort: number;
  /**
   * The number of written bytes that the kernel has refused to take yet. Does not count bytes that a transport passes to the
   * kernel later in the turn. After a failure, the number that never reached the kernel.
   */
  readonly queuedBytes: number;
  /**
   * Whether `onDrain` will be called. An owner that forwards bytes to this stream must not read more bytes before.
   */
  readonly awaitsDrain: boolean;
  /**
   * Returns the number of written bytes that the peer's kernel has not acknowledged, including the queued bytes. After
   * the close, returns the number of bytes that were never acknowledged. A transport that cannot ask the kernel returns
   * `queuedBytes`.
   */
  unacknowledgedBytes(): number;
  /**
   * The maximum length of one `write`; absent or infinite if there is no limit. A longer write would block the worker
   * for too long, for example while the bytes are encrypted.
   */
  readonly maxWriteBytes?: number;
  /**
   * Makes `events` the owner of a stream from `onConnection`. A later call, even from an event handler, replaces the
   * owner.
   */
  accept(events: StreamEvents): void;
  /**
   * Limits the number of bytes of each read from now on, for rate-limited connections. Absent if the transport does not
   * support a limit.
   */
  limitReadBytes?(bytes: number): void;
  /**
   * Returns how much memory the stream and the kernel use for bytes of this connection, in both directions. While the
   * stream is not read, its receive buffer counts as full. Absent if the transport cannot ask the kernel.
   */
  bufferedBytes?(): number;
  /** Changes how many bytes are buffered from now on. Absent if the transport does not support this. */
  setWindow?(window: Window): void;
  /**
   * Calls `readLater` instead of reading, whenever something can be read. `readLater` must arrange a call of `readNow`.
   * With undefined, the stream reads by itself again.
   */
  deferReads(readLater: (() => void) | undefined): void;
  /** Reads once, unless reading has stopped or nothing can be read. */
  readNow(): void;
  /** Whether `readStart` was called, and `readStop` was not called since. */
  readonly isReading: boolean;
  readStart(): void;
  /** Stops reading. `onData` is not called again before `readStart`. */
  readStop(): void;
  /**
   * Writes `bytes`. Copies and queues the part that the kernel does not take at once. Returns `queuedBytes`. If the
   * result is not 0, `onDrain` is called when the queue is empty. With another window than `full`, `onDrain` is called
   * when the kernel has sent all bytes.
   */
  write(bytes: Uint8Array): number;
  /** Sends FIN after the queued bytes. */
  shutdown(): void;
  /** Sends RST at once and discards the queued bytes and the bytes in the kernel. */
  reset(): void;
}

/** A stream whose connection can be used for TLS. */
export interface DetachableStream extends TcpStream {
  /**
   * Returns the connection as a socket for a TLSSocket. Must be called before the first write, and for a stream from
   * `connect` not before `onConnect`. Afterwards the stream does nothing and calls no handler, not even `onClose`.
   */
  detach(): DetachedStream;
}

/** The stream of an accepted connection, as passed to `onConnection`. */
export type AcceptedStream = DetachableStream;

export interface DetachedStream {
  readonly socket: Socket;
  /** Absent if only Node.js can read the socket. */
  readonly input?: DetachedInput;
}

/** Reads a detached socket while Node.js does not read the socket. */
export interface DetachedInput {
  /** Calls `onReadable` when `read` has something to return, and again when `read` has returned undefined and more has arrived. */
  watch(onReadable: () => void): void;
  /**
   * Reads once. Returns the bytes, which are valid until the next read of any stream, or undefined if there are none yet,
   * or an errno name if there are no more. Must not be called after the socket was destroyed, because the kernel may have
   * given its descriptor to another connection.
   */
  read(): Uint8Array | string | undefined;
  /** Must be called when Node.js reads the socket from now on, or when the socket has closed. */
  close(): void;
}
