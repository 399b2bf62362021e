// The one door to UDP. What stands behind it (bare handles, or public `dgram`) is held to
// `test/udp/transport-contract.ts`. Nothing waits in here: what the kernel does not take is dropped, as UDP may, but for
// the one datagram that libuv keeps by itself.
import type { SocketAddress } from './tcp-transport.ts';

export interface UdpTransport {
  /** Binds. Exactly one of `onListening` and `onFailed` follows, after it has returned. */
  bind(at: UdpBindOptions, events: UdpListenSocketEvents): UdpListenSocket;
  /**
   * A socket that talks with this endpoint only: the kernel drops what others send to it, and tells the ICMP errors of
   * what is sent. `address` is an IP literal. Undefined: there is no socket to be had (descriptors, ports, no way there).
   */
  connect(to: SocketAddress, events: UdpEndpointSocketEvents): UdpEndpointSocket | undefined;
}

export interface UdpBindOptions extends SocketAddress {
  /** Several sockets may share the port: the kernel gives all of one client address and port to the same one. */
  readonly reusePort: boolean;
}

export interface UdpListenSocketEvents {
  onListening(): void;
  /** `code` as in errno, such as EADDRINUSE. The listener is closed. */
  onFailed(code: string): void;
  /** `bytes`, which may be none, belong to whom they are told. */
  onMessage(bytes: Uint8Array, address: string, port: number): void;
  /** What a handler threw; never let into the event loop, where it would end the worker. */
  onThrow(thrown: unknown): void;
}

export interface UdpListenSocket {
  /** From the address that it is bound to. `bytes` must not change afterwards. */
  send(bytes: Uint8Array, to: UdpRecipient): void;
  /** Releases the port before it returns. Nothing is told afterwards, not even what was sent. */
  close(): void;
}

export interface UdpRecipient extends SocketAddress {
  /** So many bytes, one datagram, were taken by the kernel: at once, or a little later. */
  onSent(bytes: number): void;
}

export interface UdpEndpointSocketEvents {
  onMessage(bytes: Uint8Array): void;
  /** Of something sent earlier, such as ECONNREFUSED: the host says that nobody listens there. The socket is as good as before. */
  onError(code: string): void;
  onThrow(thrown: unknown): void;
}

export interface UdpEndpointSocket {
  /**
   * `bytes` must not change afterwards. A code: this datagram was not sent, which may be for what became of an earlier one.
   * Undefined: it was, or it was dropped because the kernel had no room.
   */
  send(bytes: Uint8Array): string | undefined;
  /** Nothing is told afterwards. */
  close(): void;
}

/** Room for a burst while the worker is busy; the kernel cuts it to `net.core.rmem_max`. */
export const UDP_RECEIVE_BUFFER_BYTES = 1_048_576;
