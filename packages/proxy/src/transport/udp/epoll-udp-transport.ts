import { getSystemErrorName } from 'node:util';
import { eventLoop } from '../event-loop.ts';
import { countDroppedDatagrams } from '../syscalls/datagrams.ts';
import {
  AF_INET6,
  EPOLLIN,
  IPPROTO_IPV6,
  IPV6_V6ONLY,
  SO_RCVBUF,
  SO_REUSEPORT,
  SOCK_DGRAM,
  SOL_SOCKET,
} from '../syscalls/layouts.ts';
import { bindSocket, closeDescriptor, familyOf, openSocket, setOption } from '../syscalls/sockets.ts';
import {
  UDP_RECEIVE_BUFFER_BYTES,
  type UdpBindOptions,
  type UdpListenSocket,
  type UdpListenSocketEvents,
  type UdpRecipient,
  type UdpTransport,
} from '../udp-transport.ts';
import { datagramArena, datagramSlots, NO_SLOT, prepareCopy, ReceiveBurst, SlotQueue } from './datagram-arena.ts';
import { connectEpollUdp, EAGAIN } from './epoll-udp-endpoint-socket.ts';

/** The maximum number of datagrams that one listen socket receives in one turn of the loop. */
const MAX_DATAGRAMS_PER_TURN = 64;

/** The recipient of each queued slot, for all listen sockets of this thread. */
const recipients: (UdpRecipient | undefined)[] = [];

class EpollUdpListenSocket implements UdpListenSocket {
  readonly #events: UdpListenSocketEvents;
  readonly #queue = new SlotQueue();
  readonly #burst = new ReceiveBurst(MAX_DATAGRAMS_PER_TURN);
  /** -1 after the close. */
  #descriptor = -1;
  #isClosed = false;
  #dropped = 0;

  constructor(at: UdpBindOptions, events: UdpListenSocketEvents) {
    this.#events = events;
    const error = this.#open(at);
    // Deferred, because the caller gets this object only when the constructor has returned.
    setImmediate(() => this.#emitResult(error));
  }

  onEvents(): void {
    const { size } = this.#burst;
    const first = datagramArena.reserve(size);
    const count = datagramSlots.receiveFromClients(this.#descriptor, first, size);
    this.#burst.adapt(count);
    // A read error belongs to no particular datagram and does not close the socket.
    if (count <= 0) return;
    datagramArena.use(count);
    for (let slot = first; slot < first + count && !this.#isClosed; slot += 1) this.#emitMessage(slot);
  }

  send(bytes: Uint8Array, to: UdpRecipient): void {
    // An attacker can forge a datagram from port 0. The kernel does not send to this port.
    if (this.#isClosed || to.port === 0) return;
    const slot = datagramArena.slotOf(bytes);
    if (slot === NO_SLOT) {
      this.#sendCopy(bytes, to);
      return;
    }
    if (this.#queue.length === 0) datagramArena.flushLater(this);
    this.#queue.push(slot);
    recipients[slot] = to;
  }

  flush(): void {
    while (this.#queue.length > 0) {
      this.#queue.prepare(recipients);
      const taken = datagramSlots.sendToClients(this.#descriptor, this.#queue.length);
      if (taken > 0) this.#removeSent(taken);
      // If the send buffer is full, all datagrams are dropped, as UDP permits. After any other error, only the
      // first datagram is dropped.
      else this.#drop(taken === EAGAIN ? this.#queue.length : 1);
    }
  }

  takeDropped(): number {
    if (this.#descriptor < 0) return 0;
    const total = countDroppedDatagrams(this.#descriptor);
    // The kernel's counter has 32 bits.
    const dropped = (total - this.#dropped) >>> 0;
    this.#dropped = total;
    return dropped;
  }

  close(): void {
    if (this.#isClosed) return;
    this.flush();
    this.#isClosed = true;
    if (this.#descriptor < 0) return;
    eventLoop.unregister(this.#descriptor);
    closeDescriptor(this.#descriptor);
    this.#descriptor = -1;
  }

  #emitMessage(slot: number): void {
    const bytes = datagramArena.bytesOf(slot, datagramSlots.clientLengthOf(slot));
    const previous = datagramArena.handle(slot);
    try {
      this.#events.onMessage(bytes, datagramSlots.hostOf(slot), datagramSlots.portOf(slot));
    } catch (thrown) {
      this.#events.onThrow(thrown);
    }
    datagramArena.handle(previous);
  }

  #sendCopy(bytes: Uint8Array, to: UdpRecipient): void {
    this.flush();
    if (!prepareCopy(bytes)) return;
    datagramSlots.prepareRecipient(0, to.host, to.port);
    if (datagramSlots.sendToClients(this.#descriptor, 1) > 0) to.onSent(bytes.length);
  }

  #removeSent(count: number): void {
    for (let index = 0; index < count; index += 1) {
      const slot = this.#queue.shift();
      recipients[slot]?.onSent(datagramArena.lastBytesOf(slot).length);
      recipients[slot] = undefined;
    }
  }

  #drop(count: number): void {
    for (let index = 0; index < count; index += 1) recipients[this.#queue.shift()] = undefined;
  }

  #open({ address, port, reusePort }: UdpBindOptions): number {
    const family = familyOf(address);
    const descriptor = openSocket(family, SOCK_DGRAM);
    if (descriptor < 0) return descriptor;
    // The result is ignored, because a smaller buffer works, too.
    setOption(descriptor, SOL_SOCKET, SO_RCVBUF, UDP_RECEIVE_BUFFER_BYTES);
    const error = [
      reusePort ? setOption(descriptor, SOL_SOCKET, SO_REUSEPORT, 1) : 0,
      family === AF_INET6 ? setOption(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 1) : 0,
      bindSocket(descriptor, address, port),
      eventLoop.register(descriptor, EPOLLIN, this),
    ].find((result) => result < 0);
    if (error !== undefined) {
      eventLoop.unregister(descriptor);
      closeDescriptor(descriptor);
      return error;
    }
    this.#descriptor = descriptor;
    return 0;
  }

  #emitResult(error: number): void {
    if (this.#isClosed) return;
    if (error === 0) {
      this.#events.onListening();
      return;
    }
    this.#isClosed = true;
    this.#events.onFailed(getSystemErrorName(error));
  }
}

/** UDP on system calls: non-blocking sockets that receive and send several datagrams with one call. */
export const epollUdpTransport: UdpTransport = {
  bind: (at, events) => new EpollUdpListenSocket(at, events),
  connect: connectEpollUdp,
};
