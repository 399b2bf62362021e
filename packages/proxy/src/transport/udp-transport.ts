// The interface to UDP. Each implementation passes `test/transport/udp/transport.test.ts`. If the send buffer is full,
// libuv keeps at most one datagram per socket, and `epollUdpTransport` keeps none. All further datagrams are dropped, as
// UDP permits.
//
// A handler gets the bytes of a datagram only until it returns, because the next datagram may overwrite them. In the
// handler, the same bytes can be passed to `send` of any socket of the same transport and thread.
import type { PeerAddress } from './peer-address.ts';
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
  /**
   * Called for each datagram. `bytes` may be empty, and is valid until the handler returns. `host` and `port` are the
   * client's address, as in `PeerAddress`.
   */
  onMessage(bytes: Uint8Array, host: number | string, port: number): void;
  /** Called with an exception of another handler. If the exception reached the event loop, it would end the worker. */
  onThrow(thrown: unknown): void;
}

export interface UdpListenSocket {
  /**
   * Sends a datagram from the bound address. Bytes of a handler are sent at the latest after all events of this turn of
   * the event loop. The caller must not change other bytes afterwards. Does nothing if the port of `to` is 0.
   */
  send(bytes: Uint8Array, to: UdpRecipient): void;
  /** Sends the datagrams now that `send` has kept until the end of the turn. */
  flush(): void;
  /** Returns how many datagrams the kernel has dropped since the last call, or 0 if the transport cannot know this. */
  takeDropped(): number;
  /** Sends the datagrams that `send` has kept. Then closes the socket. The port is free when `close` returns. No handler is called afterwards, not even `onSent`. */
  close(): void;
}

export interface UdpRecipient extends PeerAddress {
  /**
   * Called when the kernel has taken the datagram, during `send` or later. `bytes` is the length of the datagram. The
   * handler must neither send nor close.
   */
  onSent(bytes: number): void;
}

export interface UdpEndpointSocketEvents {
  /** Called for each datagram. `bytes` may be empty, and is valid until the handler returns. */
  onMessage(bytes: Uint8Array): void;
  /**
   * Called if a datagram has failed, for example with ECONNREFUSED because no process listens on the port. The socket
   * stays usable. `unsent` is a datagram that was not sent because of the error, if there is one, and is valid until the
   * handler returns. The error may be the error of an earlier datagram.
   *
   * If the handler closes the socket, it is called once more for each further datagram that was not sent, with the code
   * `NOT_SENT` and in the order of `send`.
   */
  onError(code: string, unsent?: Uint8Array): void;
  onThrow(thrown: unknown): void;
}

export interface UdpEndpointSocket {
  /**
   * Sends a datagram, or drops it if the send buffer is full. Bytes of a handler are sent at the latest after all events
   * of this turn of the event loop. The caller must not change other bytes afterwards. Any other failure is reported to
   * `onError`, during `send` or later.
   */
  send(bytes: Uint8Array): void;
  /** Closes the socket. No handler is called afterwards, except as `onError` says. */
  close(): void;
}

/** The code of `onError` for a datagram that was not sent because the handler of another error has closed the socket. */
export const NOT_SENT = 'ECANCELED';

/**
 * The size of a listen socket's receive buffer: room for a burst of datagrams while the worker is busy. The kernel
 * limits the size to `net.core.rmem_max`.
 */
export const UDP_RECEIVE_BUFFER_BYTES = 4_194_304;
