// A TCP stream on a libuv handle, without `net.Socket`. Two rules keep the data of tenants apart. First, the read
// buffer that all streams share is never passed to a libuv write, because libuv would keep the address of the buffer
// while the next read overwrites the bytes. Second, nothing is written to a descriptor once its handle is closing,
// because the kernel reuses the descriptor's number for another connection.
import type { Socket } from 'node:net';
import { getSystemErrorName } from 'node:util';
import type { AcceptedStream, StreamEvents } from '../tcp-transport.ts';
import { lastReader, NextIterationQueue } from './loop-iteration.ts';
import { PausedStreams } from './paused-streams.ts';
import { closingStreams, type HandleOwner, onFinished, onRead, onWritten, pendingWrites } from './raw-callbacks.ts';
import { requireRawTcpBinding, socketFromHandle, type TcpHandle, writeToDescriptor } from './raw-tcp-binding.ts';
import { CopyBuffer, PrefixViews } from './write-buffers.ts';

/**
 * The read quantum while several streams are active. Libuv alone would fill a buffer of any size up to 32 times in a
 * row.
 */
const NARROW_READ_BYTES = 262_144;
/**
 * The read quantum of a stream that reads alone. A large quantum wakes the peers less often; waking them is half of the
 * cost per byte.
 */
const WIDE_READ_BYTES = 4_194_304;
/**
 * How many times in a row a stream must fill the narrow buffer, while no other stream reads, to get the wide buffer.
 */
const MIN_FULL_READS_TO_WIDEN = 4;
/**
 * While buffers for pending writes exceed this size, all streams read narrowly, because wide reads might have to be
 * queued as well.
 */
const MAX_PENDING_WRITE_BYTES = 33_554_432;
/** The size of a write that fits into one TCP segment on any network. */
const MAX_SEGMENT_BYTES = 1_024;
/**
 * The largest write that is copied and passed to libuv. Up to this size a copy costs less than the exception that a
 * direct write throws if the send buffer is full.
 */
const MAX_COPIED_WRITE_BYTES = 8_192;

const { newShutdownRequest } = requireRawTcpBinding();
const received = new PrefixViews(WIDE_READ_BYTES);
const wide = received.memory;
const narrow = wide.subarray(0, NARROW_READ_BYTES);
const copies = new CopyBuffer(MAX_COPIED_WRITE_BYTES);
const yieldedStreams = new NextIterationQueue<RawTcpStream>((stream) => stream.resumeReading());
const streamsToShutDown = new NextIterationQueue<RawTcpStream>((stream) => stream.finish());
const paused = new PausedStreams();

interface PeerName {
  address?: string;
  port?: number;
}

type Fin = 'none' | 'wanted' | 'sending' | 'sent';

export class RawTcpStream implements AcceptedStream, HandleOwner {
  readonly #handle: TcpHandle;
  #events: StreamEvents | undefined;
  #isAccepted = false;
  #isConnecting = false;
  #wantsToRead = false;
  /** Whether libuv is reading now. If so, calling `readStart` of the handle would be an error. */
  #isPolling = false;
  #hasYielded = false;
  #hasEnded = false;
  /** The current read quantum in bytes, at most `#maxWindow`. */
  #window = NARROW_READ_BYTES;
  #maxWindow = Number.POSITIVE_INFINITY;
  /** Whether `#open` has given the handle a read buffer. */
  #isOpen = false;
  #streak = 0;
  #fin: Fin = 'none';
  #isClosed = false;
  /**
   * Whether Nagle's algorithm (RFC 896) is off, or on with no write (`unused`) or one write (`used`) so far. The
   * algorithm delays a small write until earlier writes are acknowledged. It is turned off only before the second
   * write, because most connections to endpoints have a single write and need no system call.
   */
  #nagle: 'off' | 'unused' | 'used';
  /** Whether `reset` was called while the FIN is queued. Libuv can reset only after the FIN is sent. */
  #resetsAfterFin = false;
  #code: string | undefined;
  /** The number of writes that libuv has not completed. */
  #pending = 0;
  /** The last known number of queued bytes. After the close, the number of bytes that never reached the kernel. */
  #queued = 0;
  #peer: PeerName | undefined;
  watchedAt = -1;

  /**
   * Creates a stream on a connected handle. For a handle that is not connected yet, `connecting` must be called next.
   */
  constructor(handle: TcpHandle, nagle: 'off' | 'unused' = 'off') {
    this.#handle = handle;
    this.#nagle = nagle;
    handle.owner = this;
  }

  get remoteAddress(): string {
    return this.#peerName().address ?? '';
  }

  get remotePort(): number {
    return this.#peerName().port ?? 0;
  }

  get queuedBytes(): number {
    if (this.#pending > 0 && !this.#isClosed) this.#queued = this.#handle.writeQueueSize;
    return this.#queued;
  }

  unacknowledgedBytes(): number {
    return this.queuedBytes;
  }

  accept(events: StreamEvents): void {
    const isHandedOn = this.#events !== undefined;
    this.#events = events;
    if (isHandedOn) return;
    this.#isAccepted = true;
    this.#open();
  }

  connecting(events: StreamEvents): void {
    this.#events = events;
    this.#isConnecting = true;
  }

  connected(status: number): void {
    if (this.#isClosed) return;
    this.#isConnecting = false;
    if (status < 0) {
      this.fail(status);
      return;
    }
    this.#open();
    this.#emit('onConnect');
    if (this.#wantsToRead) this.readStart();
    if (this.#fin === 'wanted' && this.#pending === 0) this.#sendFin();
  }

  limitReadBytes(bytes: number): void {
    this.#maxWindow = Math.max(1, bytes);
    // If the stream is already open, `take` applies the new limit after the next read.
    if (!this.#isOpen) this.#window = Math.min(this.#maxWindow, NARROW_READ_BYTES);
  }

  readStart(): void {
    this.#wantsToRead = true;
    if (this.#isPolling || this.#hasYielded || this.#isClosed || this.#isConnecting || this.#hasEnded) return;
    this.#isPolling = true;
    const error = this.#handle.readStart();
    if (error < 0) this.fail(error);
  }

  readStop(): void {
    this.#wantsToRead = false;
    if (this.#isPolling) this.#stopPolling();
    if (this.#isAccepted) paused.watch(this);
  }

  write(bytes: Uint8Array): number {
    if (this.#nagle !== 'off') this.#disableNagleOnSecondWrite(bytes.length);
    if (this.#isClosed) {
      this.#queued += bytes.length;
    } else if (bytes.length <= MAX_COPIED_WRITE_BYTES) {
      // Libuv gets a copy, because it may keep the bytes.
      if (this.#writeWithLibuv(copies.copy(bytes))) copies.keep();
    } else {
      this.#writeLarge(bytes);
    }
    return this.#queued;
  }

  shutdown(): void {
    if (this.#isClosed || this.#fin !== 'none') return;
    this.#fin = 'wanted';
    if (this.#pending > 0 || this.#isConnecting) return;
    if (this.#hasEnded) this.#close(undefined);
    else streamsToShutDown.add(this);
  }

  /**
   * Sends the FIN one loop iteration after `shutdown`. If the peer's FIN has arrived by then, one close(2) ends the
   * connection.
   */
  finish(): void {
    if (this.#fin === 'wanted' && this.#pending === 0 && !this.#isClosed) this.#sendFin();
  }

  reset(): void {
    if (this.#isClosed) return;
    this.#stop(undefined);
    // Libuv refuses to reset while a FIN is queued, and the descriptor would leak. The reset therefore waits for the
    // FIN, which is sent in this loop iteration.
    if (this.#fin === 'sending') this.#resetsAfterFin = true;
    else this.#resetNow();
  }

  detachSocket(unread: Uint8Array): Socket {
    if (this.#isClosed || this.#pending > 0 || this.#fin !== 'none')
      throw new Error('a stream in use cannot be detached');
    // Reads the peer's address while this stream still owns the handle.
    this.#peerName();
    if (this.#isPolling) this.#stopPolling();
    this.#stop(undefined);
    this.#events = undefined;
    this.#handle.owner = undefined;
    return socketFromHandle(this.#handle, unread);
  }

  take(count: number): Uint8Array | undefined {
    const isAlone = lastReader.stream === this;
    lastReader.stream = this;
    if (count === this.#window) {
      this.#streak += 1;
      this.#yieldTurn();
    }
    try {
      this.#events?.onData(this, received.first(count));
    } catch (thrown) {
      this.#events?.onThrow(this, thrown);
    }
    if (!isAlone) this.#streak = 0;
    const isWide = this.#streak >= MIN_FULL_READS_TO_WIDEN && pendingWrites.lentBytes < MAX_PENDING_WRITE_BYTES;
    const window = Math.min(this.#maxWindow, isWide ? WIDE_READ_BYTES : NARROW_READ_BYTES);
    if (window === this.#window) return undefined;
    this.#window = window;
    return bufferOf(window);
  }

  end(): void {
    this.#hasEnded = true;
    this.#isPolling = false;
    this.#emit('onEnd');
    if (this.#isClosed) return;
    if (this.#fin === 'sent' || (this.#fin === 'wanted' && this.#pending === 0)) this.#close(undefined);
    else paused.watch(this);
  }

  written(status: number): void {
    this.#pending -= 1;
    if (this.#isClosed) return;
    if (status < 0) {
      // Libuv no longer knows how much was written. With `#pending` at 0, `#stop` keeps the last value of `#queued`.
      this.#pending = 0;
      this.fail(status);
      return;
    }
    this.#queued = this.#pending === 0 ? 0 : this.#handle.writeQueueSize;
    if (this.#pending > 0) return;
    this.#emit('onDrain');
    if (this.#fin === 'wanted' && this.#pending === 0 && !this.#isClosed) this.#sendFin();
  }

  finished(status: number): void {
    this.#fin = 'sent';
    if (this.#resetsAfterFin) this.#resetNow();
    else if (this.#isClosed) return;
    else if (status < 0) this.fail(status);
    else if (this.#hasEnded) this.#close(undefined);
  }

  /** Closes the stream after an error. The connection is already broken, so no RST is needed. */
  fail(error: number): void {
    if (!this.#isClosed) this.#close(getSystemErrorName(error));
  }

  resumeReading(): void {
    this.#hasYielded = false;
    if (this.#wantsToRead) this.readStart();
  }

  get isReadPaused(): boolean {
    return !this.#isClosed && !this.#isConnecting && (this.#hasEnded || !this.#wantsToRead);
  }

  /**
   * Writes zero bytes, which sends nothing, and closes the stream if the write fails because the connection is broken.
   */
  probe(): void {
    if (this.#pending > 0 || this.#fin !== 'none') return;
    const result = this.#handle.writeBuffer(null, received.first(0));
    if (typeof result === 'number' && result < 0) this.fail(result);
  }

  emitClose(): void {
    this.#events?.onClose(this, this.#code);
  }

  /** Returns the peer's address and port. They are read only on first use, because reading them is a system call. */
  #peerName(): PeerName {
    if (this.#peer === undefined) {
      this.#peer = {};
      if (!this.#isClosed) this.#handle.getpeername(this.#peer);
    }
    return this.#peer;
  }

  #open(): void {
    const handle = this.#handle;
    handle.onread = onRead;
    handle.useUserBuffer(bufferOf(this.#window));
    this.#isOpen = true;
  }

  #disableNagleOnSecondWrite(length: number): void {
    if (this.#nagle === 'unused' && length <= MAX_SEGMENT_BYTES) {
      this.#nagle = 'used';
      return;
    }
    this.#nagle = 'off';
    if (!this.#isClosed) this.#handle.setNoDelay(true);
  }

  /**
   * Writes `bytes`. Returns true if libuv needs `bytes` until the write completes, or false if the caller can reuse
   * them.
   */
  #writeWithLibuv(bytes: Uint8Array): boolean {
    const handle = this.#handle;
    const result = handle.writeBuffer(null, bytes);
    if (result === 0) return false;
    if (typeof result === 'number') {
      this.#queued += bytes.length;
      this.fail(result);
      return false;
    }
    result.owner = this;
    result.bytes = bytes;
    result.oncomplete = onWritten;
    this.#pending += 1;
    this.#queued = handle.writeQueueSize;
    return true;
  }

  #writeLarge(bytes: Uint8Array): void {
    const isDirect = this.#pending === 0 && !this.#isConnecting;
    const taken = isDirect ? writeToDescriptor(this.#handle.fd, bytes) : 0;
    if (taken < 0) {
      this.#queued += bytes.length;
      this.fail(taken);
    } else if (taken < bytes.length) {
      const rest = pendingWrites.copy(taken === 0 ? bytes : bytes.subarray(taken));
      if (!this.#writeWithLibuv(rest)) pendingWrites.giveBack(rest);
    }
  }

  /**
   * Stops reading until the next loop iteration, so that other streams can read. Libuv alone would fill the buffer up
   * to 32 times in a row.
   */
  #yieldTurn(): void {
    this.#hasYielded = true;
    this.#stopPolling();
    yieldedStreams.add(this);
  }

  #stopPolling(): void {
    this.#isPolling = false;
    this.#handle.readStop();
  }

  #sendFin(): void {
    // The peer has sent its FIN and nothing is queued. So close(2) sends the FIN, and no shutdown request is needed.
    if (this.#hasEnded) {
      this.#close(undefined);
      return;
    }
    this.#fin = 'sending';
    const request = newShutdownRequest();
    request.owner = this;
    request.oncomplete = onFinished;
    const error = this.#handle.shutdown(request);
    if (error < 0) this.fail(error);
  }

  #close(code: string | undefined): void {
    this.#stop(code);
    this.#handle.close();
    closingStreams.add(this);
  }

  #resetNow(): void {
    if (this.#handle.reset() !== 0) this.#handle.close();
    closingStreams.add(this);
  }

  /** Stops reads, writes and all handlers except `onClose`. */
  #stop(code: string | undefined): void {
    if (this.#pending > 0) this.#queued = this.#handle.writeQueueSize;
    this.#isClosed = true;
    this.#isPolling = false;
    this.#code = code;
    paused.forget(this);
  }

  #emit(event: 'onConnect' | 'onEnd' | 'onDrain'): void {
    try {
      // Not `events[event]`, because V8 uses a slow dictionary lookup for a varying name.
      if (event === 'onEnd') this.#events?.onEnd(this);
      else if (event === 'onDrain') this.#events?.onDrain(this);
      else this.#events?.onConnect(this);
    } catch (thrown) {
      this.#events?.onThrow(this, thrown);
    }
  }
}

function bufferOf(size: number): Uint8Array {
  return size === NARROW_READ_BYTES ? narrow : wide.subarray(0, size);
}
