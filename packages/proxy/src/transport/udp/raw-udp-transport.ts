import { getSystemErrorName } from 'node:util';
import { hostOf, hostText } from '../peer-address.ts';
import {
  UDP_RECEIVE_BUFFER_BYTES,
  type UdpBindOptions,
  type UdpListenSocket,
  type UdpListenSocketEvents,
  type UdpRecipient,
  type UdpTransport,
} from '../udp-transport.ts';
import { requireRawUdpBinding, type UdpHandle, type UdpSource } from './raw-udp-binding.ts';
import { connectRawUdp, type PendingSend, replaceReusable, reusable } from './raw-udp-endpoint-socket.ts';

const { newHandle, IPV6_ONLY, REUSE_PORT } = requireRawUdpBinding();

export class RawUdpListenSocket implements UdpListenSocket, PendingSend {
  readonly #handle: UdpHandle = newHandle();
  readonly #events: UdpListenSocketEvents;
  readonly #isIPv6: boolean;
  /**
   * The recipient of the datagram that libuv keeps, if any. While libuv keeps a datagram, the send buffer is full, and
   * further datagrams are dropped.
   */
  #pendingRecipient: UdpRecipient | undefined;
  #isClosed = false;

  constructor(at: UdpBindOptions, events: UdpListenSocketEvents) {
    this.#events = events;
    this.#isIPv6 = at.address.includes(':');
    this.#handle.owner = this;
    this.#handle.onmessage = onMessage;
    this.#handle.onerror = onError;
    const error = this.#open(at);
    // Deferred, because the caller gets this object only when the constructor has returned.
    setImmediate(() => this.#emitResult(error));
  }

  send(bytes: Uint8Array, to: UdpRecipient): void {
    // An attacker can forge a datagram from port 0. The kernel does not send to this port.
    if (this.#isClosed || this.#pendingRecipient !== undefined || to.port === 0) return;
    const handle = this.#handle;
    const address = hostText(to.host);
    const { request, list } = reusable;
    list[0] = bytes;
    const result = this.#isIPv6
      ? handle.send6(request, list, 1, to.port, address, true)
      : handle.send(request, list, 1, to.port, address, true);
    if (result > 0) to.onSent(bytes.length);
    else if (result === 0) {
      this.#pendingRecipient = to;
      replaceReusable(this);
    }
  }

  flush(): void {}

  takeDropped(): number {
    return 0;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#handle.close();
  }

  take(bytes: Uint8Array, from: UdpSource): void {
    if (this.#isClosed) return;
    try {
      this.#events.onMessage(bytes, hostOf(from.address), from.port);
    } catch (thrown) {
      this.#events.onThrow(thrown);
    }
  }

  onTaken(bytes: number): void {
    const to = this.#pendingRecipient;
    this.#pendingRecipient = undefined;
    if (!this.#isClosed) to?.onSent(bytes);
  }

  onRefused(): void {
    this.#pendingRecipient = undefined;
  }

  #open({ address, port, reusePort }: UdpBindOptions): number {
    const handle = this.#handle;
    const flags = reusePort ? REUSE_PORT : 0;
    const bound = this.#isIPv6 ? handle.bind6(address, port, flags | IPV6_ONLY) : handle.bind(address, port, flags);
    if (bound < 0) return bound;
    handle.bufferSize(UDP_RECEIVE_BUFFER_BYTES, true, {});
    return handle.recvStart();
  }

  #emitResult(error: number): void {
    if (this.#isClosed) return;
    if (error === 0) {
      this.#events.onListening();
      return;
    }
    this.close();
    this.#events.onFailed(getSystemErrorName(error));
  }
}

function onMessage(this: UdpHandle, count: number, _handle: UdpHandle, bytes: Uint8Array, from: UdpSource): void {
  // A read error belongs to no particular datagram and does not close the socket.
  if (count >= 0) (this.owner as RawUdpListenSocket).take(bytes, from);
}

function onError(): void {}

/** UDP on the libuv handles below `node:dgram`, without the event emitters, lookups and list copies of `dgram`. */
export const rawUdpTransport: UdpTransport = {
  bind: (at, events) => new RawUdpListenSocket(at, events),
  connect: connectRawUdp,
};
