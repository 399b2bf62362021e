// The interface to UDP. Each implementation passes `test/transport/udp/transport.test.ts`. If the kernel does not take
// a datagram, libuv keeps at most one datagram per socket. All further datagrams are dropped, as UDP permits.
import type { SocketAddress } from './tcp-transport.ts';

export interface UdpTransport {
  /** Opens a listen socket. Exactly one of `onListening` and `onFailed` is called after `bind` has returned. */
  bind(at: UdpBindOptions, events: UdpListenSocketEvents): UdpListenSocket;
  /**
   * Returns a socket connected to the endpoint `to`. On such a socket the kernel drops datagrams from other addresses
   * and reports ICMP errors. `to.address` must be an IP literal. Returns undefined if no socket can be opened, because
   * there is no descriptor, local port or route.
   */
  connect(to: SocketAddress, events: UdpEndpointSocketEvents): UdpEndpointSocket | undefined;
}

export interface UdpBindOptions extends SocketAddress {
  /**
   * Sets SO_REUSEPORT: several sockets may share the port, and the kernel picks a socket by the client's address and
   * port.
   */
  readonly reusePort: boolean;
}

export interface UdpListenSocketEvents {
  onListening(): void;
  /** Called when binding has failed; the socket is closed. `code` is an errno name such as EADDRINUSE. */
  onFailed(code: string): void;
  /** Called for each datagram. The handler owns `bytes`, which may be empty. */
  onMessage(bytes: Uint8Array, address: string, port: number): void;
  /** Called with an exception of another handler. If the exception reached the event loop, it would end the worker. */
  onThrow(thrown: unknown): void;
}

export interface UdpListenSocket {
  /** Sends a datagram from the bound address. The caller must not change `bytes` afterwards. */
  send(bytes: Uint8Array, to: UdpRecipient): void;
  /** Closes the socket. The port is free when `close` returns. No handler is called afterwards, not even `onSent`. */
  close(): void;
}

export interface UdpRecipient extends SocketAddress {
  /** Called when the kernel has taken the datagram, during `send` or later. `bytes` is the length of the datagram. */
  onSent(bytes: number): void;
}

export interface UdpEndpointSocketEvents {
  onMessage(bytes: Uint8Array): void;
  /**
   * Called if an earlier datagram has failed, for example with ECONNREFUSED because no process listens on the port. The
   * socket stays usable.
   */
  onError(code: string): void;
  onThrow(thrown: unknown): void;
}

export interface UdpEndpointSocket {
  /**
   * Sends a datagram. The caller must not change `bytes` afterwards. Returns undefined if the datagram was sent, or was
   * dropped because the send buffer is full. Otherwise returns an errno name, which may be the error of an earlier
   * datagram.
   */
  send(bytes: Uint8Array): string | undefined;
  /** Closes the socket. No handler is called afterwards. */
  close(): void;
}

/**
 * The size of a listen socket's receive buffer: room for a burst of datagrams while the worker is busy. The kernel
 * limits the size to `net.core.rmem_max`.
 */
export const UDP_RECEIVE_BUFFER_BYTES = 1_048_576;
