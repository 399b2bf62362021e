// The interface to UDP. Each implementation passes `test/transport/udp/transport.test.ts`. Nothing is queued: a
// datagram that the kernel does not take is dropped, as UDP permits, except for one per socket that libuv keeps.
import type { SocketAddress } from './tcp-transport.ts';

export interface UdpTransport {
  /** Binds. Exactly one of `onListening` and `onFailed` is called after `bind` has returned. */
  bind(at: UdpBindOptions, events: UdpListenSocketEvents): UdpListenSocket;
  /**
   * Returns a socket connected to this endpoint: the kernel drops datagrams from other addresses and reports ICMP
   * errors. `address` is an IP literal. Returns undefined if no socket can be opened (no descriptor, no local port, no
   * route).
   */
  connect(to: SocketAddress, events: UdpEndpointSocketEvents): UdpEndpointSocket | undefined;
}

export interface UdpBindOptions extends SocketAddress {
  /** SO_REUSEPORT: several sockets may share the port; the kernel picks one by the client's address and port. */
  readonly reusePort: boolean;
}

export interface UdpListenSocketEvents {
  onListening(): void;
  /** Called when binding has failed; the socket is closed. `code` is an errno name such as EADDRINUSE. */
  onFailed(code: string): void;
  /** Called for each datagram. The handler owns `bytes`, which may be empty. */
  onMessage(bytes: Uint8Array, address: string, port: number): void;
  /** Called with exceptions of the handlers, which would end the worker if they reached the event loop. */
  onThrow(thrown: unknown): void;
}

export interface UdpListenSocket {
  /** Sends from the bound address. The caller must not change `bytes` afterwards. */
  send(bytes: Uint8Array, to: UdpRecipient): void;
  /** Releases the port before it returns. No handler is called afterwards, not even `onSent`. */
  close(): void;
}

export interface UdpRecipient extends SocketAddress {
  /** Called when the kernel has taken a datagram of this many bytes, during `send` or later. */
  onSent(bytes: number): void;
}

export interface UdpEndpointSocketEvents {
  onMessage(bytes: Uint8Array): void;
  /**
   * Called when an earlier datagram has failed, for example ECONNREFUSED: no process listens on the port. The socket
   * stays usable.
   */
  onError(code: string): void;
  onThrow(thrown: unknown): void;
}

export interface UdpEndpointSocket {
  /**
   * Sends a datagram. The caller must not change `bytes` afterwards. Returns an errno name, possibly that of an earlier
   * datagram, if the datagram was not sent. Returns undefined if it was sent, or dropped because the send buffer is
   * full.
   */
  send(bytes: Uint8Array): string | undefined;
  /** No handler is called afterwards. */
  close(): void;
}

/**
 * The receive buffer of a listen socket: room for a burst while the worker is busy. The kernel limits it to
 * `net.core.rmem_max`.
 */
export const UDP_RECEIVE_BUFFER_BYTES = 1_048_576;
