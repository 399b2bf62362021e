// The interface to UDP. Each implementation passes `test/transport/udp/transport.test.ts`. If the send buffer is full,
// `dgramTransport` queues at most one datagram per socket, and `epollUdpTransport` queues none. Further datagrams are
// dropped, as UDP permits.
//
// The bytes of a received datagram are valid only until the handler returns, because the next datagram may overwrite
// them. The handler can pass these bytes to `send` of any socket of the same transport and thread.
import type { PeerAddress } from './peer-address.ts';
import type { SocketAddress } from './tcp-transport.ts';

export interface UdpTransport {
  /**
   * Opens a listen socket. Exactly one of `onListening` and `onFailed` is called after `bind` has returned, unless the
   * caller closes the socket first.
   */
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
  /** Called with an exception that another handler has thrown. If the exception reached the event loop, it would end the worker. */
  onThrow(thrown: unknown): void;
}

export interface UdpListenSocket {
  /**
   * Sends a datagram from the bound address. A datagram that a handler has received and passes on is sent by the end of
   * this turn of the event loop. The caller must not change any other `bytes` after the call, because the transport may
   * send them later. Does nothing if the port of `to` is 0.
   */
  send(bytes: Uint8Array, to: UdpRecipient): void;
  /** Sends the datagrams at once that `send` has queued for the end of the turn. */
  flush(): void;
  /** Returns how many datagrams the kernel has dropped since the last call, or 0 if the transport cannot know this. */
  takeDropped(): number;
  /**
   * Sends the datagrams that `send` has queued, and closes the socket. The port is free when `close` returns. No handler
   * is called afterwards, not even `onSent`.
   */
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
   * stays usable. The error may be the error of an earlier datagram. `unsent` is a datagram that has not been sent yet,
   * if there is one, and is valid until the handler returns. If the socket stays open, the transport may still send it.
   *
   * If the handler closes the socket, the handler is called once more for each further datagram that has not been sent,
   * with the code `NOT_SENT` and in the order of `send`.
   */
  onError(code: string, unsent?: Uint8Array): void;
  onThrow(thrown: unknown): void;
}

export interface UdpEndpointSocket {
  /**
   * Sends a datagram, or drops it if the send buffer is full. A datagram that a handler has received and passes on is
   * sent by the end of this turn of the event loop. The caller must not change any other `bytes` after the call, because
   * the transport may send them later. Any other failure is reported to `onError`, during `send` or later.
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
