import { getSystemErrorName } from 'node:util';
import { descriptorCeiling } from '../../limits/descriptor-limit.ts';
import { eventLoop } from '../event-loop.ts';
import { EPOLLIN, SOCK_DGRAM } from '../syscalls/layouts.ts';
import { closeDescriptor, connectSocket, familyOf, openSocket, takeSocketError } from '../syscalls/sockets.ts';
import type { SocketAddress } from '../tcp-transport.ts';
import { NOT_SENT, type UdpEndpointSocket, type UdpEndpointSocketEvents } from '../udp-transport.ts';
import { datagramArena, datagramSlots, NO_SLOT, prepareCopy, ReceiveBurst, SlotQueue } from './datagram-arena.ts';

/** The maximum number of datagrams that one endpoint socket receives in one turn of the loop. */
const MAX_DATAGRAMS_PER_TURN = 16;
export const EAGAIN = -11;
const ENOBUFS = -105;
const EMSGSIZE = -90;
/** EINVAL, EIO and EMSGSIZE: the path to the endpoint does not support such segments, so each datagram must be a packet of its own. */
const NOT_SEGMENTABLE: ReadonlySet<number> = new Set([-22, -5, EMSGSIZE]);

const ceiling = descriptorCeiling();

export function connectEpollUdp(
  { address, port }: SocketAddress,
  events: UdpEndpointSocketEvents,
): UdpEndpointSocket | undefined {
  const descriptor = openSocket(familyOf(address), SOCK_DGRAM);
  if (descriptor < 0) return undefined;
  const socket = new EpollUdpEndpointSocket(descriptor, events);
  if (
    descriptor < ceiling &&
    connectSocket(descriptor, address, port) === 0 &&
    eventLoop.register(descriptor, EPOLLIN, socket) === 0
  )
    return socket;
  closeDescriptor(descriptor);
  return undefined;
}

class EpollUdpEndpointSocket implements UdpEndpointSocket {
  readonly #events: UdpEndpointSocketEvents;
  readonly #queue = new SlotQueue();
  readonly #burst = new ReceiveBurst(MAX_DATAGRAMS_PER_TURN);
  /** -1 after the close. */
  #descriptor: number;
  /** Whether `onError` is running. If `onError` closes the socket, `flush` passes the queued datagrams to `onError` afterwards. */
  #isReporting = false;
  /** Whether `close` is running, which calls no handler. */
  #isClosing = false;
  /** Whether `flush` has run. The first datagrams are not sent as segments: if the endpoint refuses a packet, all its datagrams are lost. */
  #hasSent = false;
  #canSegment = true;

  constructor(descriptor: number, events: UdpEndpointSocketEvents) {
    this.#descriptor = descriptor;
    this.#events = events;
  }

  onEvents(): void {
    const { size } = this.#burst;
    const first = datagramArena.reserve(size);
    // The socket may have been closed while the datagrams in the arena were sent.
    if (this.#descriptor < 0) return;
    const count = datagramSlots.receiveFromEndpoint(this.#descriptor, first, size);
    this.#burst.adapt(count);
    if (count < 0) {
      if (count !== EAGAIN) this.#onReceiveError(count);
      return;
    }
    datagramArena.use(count);
    for (let slot = first; slot < first + count && this.#descriptor >= 0; slot += 1) this.#emitMessage(slot);
  }

  send(bytes: Uint8Array): void {
    if (this.#descriptor < 0) return;
    const slot = datagramArena.slotOf(bytes);
    if (slot === NO_SLOT) {
      this.#sendCopy(bytes);
      return;
    }
    if (this.#queue.length === 0) datagramArena.flushLater(this);
    this.#queue.push(slot);
  }

  flush(): void {
    while (this.#queue.length > 0) {
      if (this.#descriptor < 0) {
        this.#emitErrorOf(this.#queue.shift(), NOT_SENT);
        continue;
      }
      this.#queue.prepare();
      const segments = this.#hasSent && this.#canSegment ? this.#queue.countSegments() : 0;
      if (segments > 1) this.#sendSegments(segments);
      else this.#sendBatch();
    }
    this.#hasSent = true;
  }

  close(): void {
    if (this.#descriptor < 0) return;
    if (!this.#isReporting) {
      this.#isClosing = true;
      this.flush();
    }
    eventLoop.unregister(this.#descriptor);
    closeDescriptor(this.#descriptor);
    this.#descriptor = -1;
  }

  #emitMessage(slot: number): void {
    const bytes = datagramArena.bytesOf(slot, datagramSlots.endpointLengthOf(slot));
    const previous = datagramArena.handle(slot);
    try {
      this.#events.onMessage(bytes);
    } catch (thrown) {
      this.#events.onThrow(thrown);
    }
    datagramArena.handle(previous);
  }

  /** Reports the ICMP error of an earlier datagram, with the first queued datagram. It stays queued unless the handler closes the socket. */
  #onReceiveError(error: number): void {
    const code = getSystemErrorName(error);
    if (this.#queue.length === 0) {
      this.#emitError(code, undefined);
      return;
    }
    const slot = this.#queue.shift();
    this.#emitErrorOf(slot, code);
    if (this.#descriptor >= 0) this.#queue.unshift(slot);
  }

  #sendSegments(count: number): void {
    const result = datagramSlots.sendSegments(this.#descriptor, count, this.#queue.firstLength);
    if (result >= 0) this.#remove(count);
    else if (NOT_SEGMENTABLE.has(result)) this.#canSegment = false;
    else this.#onSendError(result);
  }

  #sendBatch(): void {
    const { length } = this.#queue;
    const result = datagramSlots.sendToEndpoint(this.#descriptor, length);
    if (result < 0) this.#onSendError(result);
    else {
      this.#remove(result);
      if (result < length) this.#retryFirst();
    }
  }

  /**
   * Sends the datagram again at which a batch has stopped, to get the error. sendmmsg(2) does not return the error, and clears it if it is
   * the ICMP error of an earlier datagram. But if the endpoint is on this host, the datagram causes the same error at once.
   */
  #retryFirst(): void {
    this.#queue.prepare();
    const result = datagramSlots.sendToEndpoint(this.#descriptor, 1);
    const error = result < 0 ? result : takeSocketError(this.#descriptor);
    if (error < 0) this.#onSendError(error);
    else this.#remove(1);
  }

  /** If the send buffer is full, drops all datagrams, as UDP permits. After any other error, only the first datagram has failed. */
  #onSendError(error: number): void {
    if (error === EAGAIN) this.#remove(this.#queue.length);
    else {
      const slot = this.#queue.shift();
      if (error !== ENOBUFS && !this.#isClosing) this.#emitErrorOf(slot, getSystemErrorName(error));
    }
  }

  #sendCopy(bytes: Uint8Array): void {
    // The queued datagrams are sent first, because the order of the datagrams must not change.
    this.flush();
    if (this.#descriptor < 0) {
      this.#emitError(NOT_SENT, bytes);
      return;
    }
    const result = prepareCopy(bytes) ? datagramSlots.sendToEndpoint(this.#descriptor, 1) : EMSGSIZE;
    if (result < 0 && result !== EAGAIN && result !== ENOBUFS) this.#emitError(getSystemErrorName(result), bytes);
  }

  #remove(count: number): void {
    for (let index = 0; index < count; index += 1) this.#queue.shift();
  }

  #emitErrorOf(slot: number, code: string): void {
    const previous = datagramArena.handle(slot);
    this.#emitError(code, datagramArena.lastBytesOf(slot));
    datagramArena.handle(previous);
  }

  #emitError(code: string, unsent: Uint8Array | undefined): void {
    const wasReporting = this.#isReporting;
    this.#isReporting = true;
    try {
      this.#events.onError(code, unsent);
    } catch (thrown) {
      this.#events.onThrow(thrown);
    }
    this.#isReporting = wasReporting;
  }
}
