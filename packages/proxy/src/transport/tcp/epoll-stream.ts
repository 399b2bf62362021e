// A TCP stream on a socket of this thread's `EventLoop`. The socket is registered once, edge-triggered, for all its events.
//
// Two rules keep the data of tenants apart. First, bytes that the kernel does not take at once are copied, because the next read of any
// stream overwrites the shared read buffer. Second, no system call is made with a descriptor after its close, because the kernel gives
// the number to another connection.
import { getSystemErrorName } from 'node:util';
import { eventLoop } from '../event-loop.ts';
import { hostText, type PeerAddress } from '../peer-address.ts';
import type { NativeMemory } from '../syscalls/ffi.ts';
import { EPOLLERR, EPOLLET, EPOLLHUP, EPOLLIN, EPOLLOUT, EPOLLPRI, EPOLLRDHUP } from '../syscalls/layouts.ts';
import {
  closeDescriptor,
  receive,
  resetConnection,
  shutdownWrite,
  socketMemory,
  takeSocketError,
  transmit,
  unacknowledgedSequence,
} from '../syscalls/sockets.ts';
import type { AcceptedStream, DetachedStream, StreamEvents, Window } from '../tcp-transport.ts';
import { detachDescriptor } from './epoll-detached-input.ts';
import { lastReader } from './loop-iteration.ts';
import { bytesRead, readMemory } from './read-memory.ts';
import { ReadQuantum } from './read-quantum.ts';
import { limitReceiveBuffer } from './receive-buffer.ts';
import { type BatchedStream, sendBatch } from './send-batch.ts';
import { SendBuffer } from './send-buffer.ts';
import { emitData, emitEvent } from './stream-emitter.ts';
import { transmitBytes, WriteQueue } from './write-queue.ts';

export const STREAM_EVENTS: number = EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET;
/** After these events, a short read does not mean that nothing is left to read: a read ends before a FIN and before urgent data. */
const SHORT_READ_EVENTS = EPOLLPRI | EPOLLRDHUP | EPOLLHUP | EPOLLERR;

const EAGAIN = -11;

type Fin = 'none' | 'wanted' | 'sent';
type Options = { readonly peer: PeerAddress | undefined; readonly isConnecting: boolean; readonly window?: Window };

export class EpollStream implements AcceptedStream, BatchedStream {
  batchSlot = -1;
  /** -1 after the close. */
  #descriptor: number;
  readonly #peer: PeerAddress | undefined;
  events: StreamEvents | undefined;
  #isConnecting: boolean;
  isReading = false;
  /** Whether a read may return something other than EAGAIN. Set by an event, because the socket is registered edge-triggered. */
  #isReadable = false;
  /** Whether one of the `SHORT_READ_EVENTS` has occurred. */
  #mayReadShort = false;
  #hasEnded = false;
  #isResumeQueued = false;
  #readLater: (() => void) | undefined;
  /** The turn of the event loop in which this stream has read last. */
  #readTurn = 0;
  #fin: Fin = 'none';
  readonly #readQuantum = new ReadQuantum();
  /** Whether this proxy has opened the stream to an endpoint. False for a stream of a client. */
  readonly #isOutbound: boolean;
  /** The negative errno of a failed write, or 0. The stream fails when all that the endpoint has sent is read. */
  #writeError = 0;
  readonly #sendBuffer: SendBuffer;
  /** Whether a stream without a full window waits until the kernel has sent all bytes. */
  #awaitsSpace = false;
  #queue: WriteQueue | undefined;
  /** Whether both sides have sent FIN, and the stream closes when the peer has acknowledged all bytes. */
  #isLingering = false;
  /** After the close: the number of bytes that never reached the kernel. */
  #unsent = 0;
  /** After the close: the number of bytes that the peer has not acknowledged. */
  #unacknowledged = 0;
  #code: string | undefined;

  constructor(descriptor: number, { peer, isConnecting, window = 'full' }: Options) {
    this.#descriptor = descriptor;
    this.#peer = peer;
    this.#isConnecting = isConnecting;
    // Accepted connections inherit TCP_NODELAY from the listen socket.
    this.#sendBuffer = new SendBuffer({ window, hasNoDelay: !isConnecting });
    this.#readQuantum.setWindow(window);
    this.#isOutbound = isConnecting;
  }

  get remoteAddress(): string {
    return this.#peer === undefined ? '' : hostText(this.#peer.host);
  }

  get remotePort(): number {
    return this.#peer?.port ?? 0;
  }

  get queuedBytes(): number {
    return this.#unsent + (this.#queue?.length ?? 0);
  }

  get awaitsDrain(): boolean {
    return this.#awaitsSpace || this.queuedBytes > 0;
  }

  /** Whether all written bytes were passed to the kernel. */
  get #isFlushed(): boolean {
    return this.queuedBytes === 0 && this.batchSlot < 0;
  }

  bufferedBytes(): number {
    if (this.#descriptor < 0) return 0;
    const { received, maxReceived, toSend } = socketMemory(this.#descriptor);
    const isPaused = !this.isReading && !this.#hasEnded;
    return toSend + Math.max(received, isPaused ? maxReceived : 0) + (this.#queue?.memoryBytes ?? 0);
  }

  setWindow(window: Window): void {
    if (this.#descriptor < 0 || window === this.#sendBuffer.window) return;
    this.#sendBuffer.setWindow(this.#descriptor, window);
    this.#readQuantum.setWindow(window);
  }

  unacknowledgedBytes(): number {
    if (this.#descriptor < 0) return this.#unacknowledged;
    return this.queuedBytes + sendBatch.bytesOf(this) + this.#bytesInKernel();
  }

  accept(events: StreamEvents): void {
    this.events = events;
  }

  limitReadBytes(bytes: number): void {
    this.#readQuantum.limit(bytes);
  }

  readStart(): void {
    this.isReading = true;
    if (this.#isReadable && !this.#hasEnded) this.#resumeLater();
  }

  readStop(): void {
    this.isReading = false;
  }

  deferReads(readLater: (() => void) | undefined): void {
    this.#readLater = readLater;
  }

  readNow(): void {
    if (this.#descriptor >= 0 && this.isReading && this.#isReadable && !this.#hasEnded) this.#read();
  }

  write(bytes: Uint8Array): number {
    const isUsable = this.#descriptor >= 0 && this.#writeError === 0 && !this.#isConnecting;
    const mayWait = isUsable && this.queuedBytes === 0 && this.#sendBuffer.window === 'full';
    return mayWait && sendBatch.add(this, bytes) ? 0 : this.writeNow(bytes);
  }

  /** Does the same as `write`, but passes the bytes to the kernel now, so that the result says how many the kernel has taken. */
  writeNow(bytes: Uint8Array): number {
    sendBatch.send(this);
    if (this.#descriptor < 0 || this.#writeError < 0) return this.#discard(bytes.length);
    this.#sendBuffer.prepareWrite(this.#descriptor, bytes.length);
    if (this.#isConnecting || this.queuedBytes > 0) return this.#enqueue(bytes);
    return this.#afterSend(transmitBytes(this.#descriptor, bytes), bytes, bytes.length);
  }

  sendBatched(memory: NativeMemory, length: number): void {
    this.#sendBuffer.prepareWrite(this.#descriptor, length);
    this.#afterSend(transmit(this.#descriptor, memory, length), memory.bytes, length);
    if (this.#fin === 'wanted') this.#resumeLater();
  }

  shutdown(): void {
    if (this.#descriptor < 0 || this.#fin !== 'none') return;
    this.#fin = 'wanted';
    // The FIN is sent in the next turn: if the peer's FIN arrives by then, one close(2) ends the connection.
    if (!this.#isConnecting && this.#isFlushed) this.#resumeLater();
  }

  reset(): void {
    this.#closeWith(resetConnection, undefined);
  }

  /** Closes without waiting for the peer. The kernel still sends the bytes that it has, and then FIN. */
  close(): void {
    this.#closeWith(closeDescriptor, undefined);
  }

  #closeWith(close: (descriptor: number) => void, code: string | undefined, bytesInKernel?: number): void {
    if (code === undefined) sendBatch.send(this);
    if (this.#descriptor < 0) return;
    this.#unacknowledged = this.queuedBytes + sendBatch.bytesOf(this) + (bytesInKernel ?? this.#bytesInKernel());
    close(this.#release(code));
    eventLoop.closeLater(this);
  }

  detach(): DetachedStream {
    if (this.#descriptor < 0 || !this.#isFlushed || this.#fin !== 'none')
      throw new Error('a stream in use cannot be detached');
    const descriptor = this.#descriptor;
    this.#descriptor = -1;
    this.events = undefined;
    return detachDescriptor(descriptor, { isReadable: this.#isReadable });
  }

  onEvents(events: number): void {
    if (this.#isConnecting) {
      this.#finishConnect(events);
      if (this.#descriptor < 0) return;
    }
    if (this.#isLingering) {
      this.#finish();
      return;
    }
    if ((events & EPOLLOUT) !== 0 && this.awaitsDrain && this.#writeError === 0) this.#flush();
    if (this.#descriptor < 0 || (events & (EPOLLIN | SHORT_READ_EVENTS)) === 0) return;
    this.#isReadable = true;
    if ((events & SHORT_READ_EVENTS) !== 0) this.#mayReadShort = true;
    // After the peer's FIN, a read returns 0 even if the peer has reset the connection since.
    if (this.isReading && !this.#hasEnded) this.#readOncePerTurn();
    else if ((events & EPOLLERR) !== 0) this.#failOnSocketError();
  }

  resume(): void {
    this.#isResumeQueued = false;
    if (this.#descriptor < 0) return;
    if (this.#fin === 'wanted' && !this.#isConnecting && this.#isFlushed) this.#sendFin();
    if (this.#readLater === undefined) this.readNow();
    else if (this.isReading && this.#isReadable) this.#readLater();
  }

  emitClose(): void {
    this.events?.onClose(this, this.#code);
  }

  /** Resets the stream. `error` is a negative errno. After ENOMEM, close(2) would send FIN, which looks like the end of the data. */
  fail(error: number): void {
    this.#closeWith(resetConnection, getSystemErrorName(error));
  }

  /** Fails a stream for which no socket could be opened. */
  failToOpen(error: number): void {
    this.#code = getSystemErrorName(error);
    eventLoop.closeLater(this);
  }

  /** Fails the stream. Before, reads what an endpoint sent before it reset the connection, because this may be an early answer. */
  #failToWrite(error: number): void {
    if (!this.#isOutbound || this.#hasEnded || !this.isReading) this.fail(error);
    else if (this.#writeError === 0) {
      this.#writeError = error;
      this.#isReadable = true;
      this.#mayReadShort = true;
      this.#unsent += this.#queue?.length ?? 0;
      this.#queue?.clear();
      this.#resumeLater();
    }
  }

  #readOncePerTurn(): void {
    if (this.#readLater !== undefined) this.#readLater();
    else if (this.#readTurn === eventLoop.turn) this.#resumeLater();
    else if (!this.#isResumeQueued) this.#read();
  }

  #read(): void {
    this.#readTurn = eventLoop.turn;
    const quantum = this.#readQuantum.bytes;
    const count = receive(this.#descriptor, readMemory, quantum);
    if (count <= 0) {
      this.#isReadable = false;
      if (this.#writeError < 0) this.fail(this.#writeError);
      else if (count === 0) this.endInput();
      else if (count !== EAGAIN) this.fail(count);
      return;
    }
    if (count === quantum || this.#mayReadShort) this.#resumeLater();
    else this.#isReadable = false;
    // The kernel must be able to enlarge the buffer of a client, because a distant client needs a large one.
    if (this.#readQuantum.adapt(this, count) && this.#isOutbound) limitReceiveBuffer(this.#descriptor);
    emitData(this, bytesRead(count));
  }

  /** Ends the input, at the peer's FIN or before. What the peer sends afterwards is not read. */
  endInput(): void {
    if (this.#descriptor < 0) return;
    this.#hasEnded = true;
    emitEvent(this, 'onEnd');
    if (this.#descriptor < 0) return;
    if (this.#fin === 'sent' || (this.#fin === 'wanted' && this.#isFlushed)) this.#finish();
  }

  /** Fails the stream if its socket has a pending error, for example because the peer has reset the connection. */
  #failOnSocketError(): void {
    const error = takeSocketError(this.#descriptor);
    if (error < 0) this.fail(error);
  }

  #finishConnect(events: number): void {
    if ((events & (EPOLLERR | EPOLLHUP)) !== 0) this.#failOnSocketError();
    if (this.#descriptor < 0) return;
    this.#isConnecting = false;
    emitEvent(this, 'onConnect');
    if (this.#descriptor < 0) return;
    if (this.queuedBytes > 0) this.#flush();
    else if (this.#fin === 'wanted') this.#resumeLater();
  }

  /** Keeps what a send of the first `length` bytes did not take. `taken` is the result of the send. Returns `queuedBytes`. */
  #afterSend(taken: number, bytes: Uint8Array, length: number): number {
    if (taken === length) {
      if (this.#sendBuffer.window !== 'full') this.#awaitSpace();
      return 0;
    }
    if (taken >= 0 || taken === EAGAIN) return this.#enqueue(bytes.subarray(Math.max(0, taken), length));
    this.#failToWrite(taken);
    return this.#discard(length);
  }

  #enqueue(bytes: Uint8Array): number {
    this.#queue ??= new WriteQueue();
    this.#queue.push(bytes);
    return this.#queue.length;
  }

  /** Waits for the event that the kernel has sent all bytes. The kernel has this event only for a stream that asks for it again. */
  #awaitSpace(): void {
    this.#awaitsSpace = true;
    eventLoop.modify(this.#descriptor, STREAM_EVENTS);
  }

  #flush(): void {
    if (this.#queue !== undefined && this.#queue.length > 0) {
      const result = this.#queue.flush(this.#descriptor);
      if (result < 0) this.#failToWrite(result);
      else if (this.#queue.length === 0 && this.#sendBuffer.window !== 'full') this.#awaitSpace();
      if (this.#descriptor < 0 || this.awaitsDrain) return;
    }
    this.#awaitsSpace = false;
    emitEvent(this, 'onDrain');
    if (this.#descriptor >= 0 && this.#fin === 'wanted' && this.#isFlushed) this.#sendFin();
  }

  #sendFin(): void {
    if (this.#hasEnded) this.#finish();
    else this.#shutdownNow();
  }

  #shutdownNow(): void {
    const result = shutdownWrite(this.#descriptor);
    if (result < 0) this.#failToWrite(result);
    else this.#fin = 'sent';
  }

  /**
   * Closes the stream after both FINs if the peer has acknowledged all bytes. Otherwise the descriptor stays open until
   * then, because after close(2) the stream could no longer be reset. When the peer acknowledges the FIN, the state of the
   * socket changes, and the socket has an event.
   */
  #finish(): void {
    if (this.#bytesInKernel() === 0) {
      this.#closeWith(closeDescriptor, undefined, 0);
      return;
    }
    if (this.#isLingering) {
      this.#failOnSocketError();
      return;
    }
    this.#isLingering = true;
    if (this.#fin !== 'sent') this.#shutdownNow();
  }

  /** Returns the number of bytes that the kernel has taken and the peer has not acknowledged. */
  #bytesInKernel(): number {
    if (this.#isConnecting) return 0;
    const sequence = unacknowledgedSequence(this.#descriptor);
    return this.#fin === 'sent' ? Math.max(0, sequence - 1) : Math.max(0, sequence);
  }

  #discard(bytes: number): number {
    this.#unsent += bytes;
    this.#unacknowledged += bytes;
    return this.#unsent;
  }

  /** Ends all use of the descriptor and returns the descriptor, which the caller closes. */
  #release(code: string | undefined): number {
    const descriptor = this.#descriptor;
    eventLoop.unregister(descriptor);
    this.#descriptor = -1;
    this.#sendBuffer.release();
    this.#code = code;
    this.isReading = false;
    this.#awaitsSpace = false;
    this.#unsent += sendBatch.remove(this) + (this.#queue?.length ?? 0);
    this.#queue?.clear();
    if (lastReader.stream === this) lastReader.stream = undefined;
    return descriptor;
  }

  #resumeLater(): void {
    if (this.#isResumeQueued || this.#descriptor < 0) return;
    this.#isResumeQueued = true;
    eventLoop.resumeLater(this);
  }
}
