// A stream on a bare handle of Node's: what `net.Socket` stands on, without the socket. Two rules keep tenants apart:
// the buffer that all streams read into never goes to libuv, which would keep its address while the next read
// overwrites it; and a descriptor is never written to after its handle began to close, for the kernel gives its number
// to the next connection. All of it is the state of one stream, which is why the file is long.
import type { Socket } from 'node:net';
import { getSystemErrorName } from 'node:util';
import type { AcceptedStream, StreamEvents } from '../tcp-transport.ts';
import { lastReader, NextIterationQueue } from './loop-iteration.ts';
import { PausedStreams } from './paused-streams.ts';
import { closingStreams, type HandleOwner, onFinished, onRead, onWritten, pendingWrites } from './raw-callbacks.ts';
import { requireRawTcpBinding, socketFromHandle, type TcpHandle, writeToDescriptor } from './raw-tcp-binding.ts';
import { CopyBuffer, PrefixViews } from './write-buffers.ts';

/** What one stream may take in one turn while others want theirs. Libuv alone would fill any buffer 32 times in a row. */
const NARROW_READ_BYTES = 262_144;
/** What a stream may take that has been the only one to read for a while: half the cost per byte is in waking the peers. */
const WIDE_READ_BYTES = 4_194_304;
/** So many times in a row it must have filled the narrow buffer, without anybody else. */
const MIN_FULL_READS_TO_WIDEN = 4;
/** While slow peers keep more than this waiting, all read narrowly: what is read widely may have to wait, too. */
const MAX_PENDING_WRITE_BYTES = 33_554_432;
/** Fits into one segment of any network. */
const MAX_SEGMENT_BYTES = 1_024;
/** Up to here a copy costs less than what a write past libuv has to go through. */
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
  /** What libuv does: it takes a second `readStart` for a mistake. */
  #isPolling = false;
  #hasYielded = false;
  #hasEnded = false;
  /** The size of the buffer that it reads into, and what that may be. */
  #window = NARROW_READ_BYTES;
  #most = Number.POSITIVE_INFINITY;
  /** It was told to read no more than its window. */
  #isOpen = false;
  #streak = 0;
  #fin: Fin = 'none';
  #isClosed = false;
  /**
   * Nagle's algorithm (RFC 896) holds a small write back while one before is not acknowledged. To turn it off is a system call, and
   * nothing to most connections towards endpoints, on which there is one write: so it is made before the second.
   */
  #nagle: 'off' | 'unused' | 'used';
  /** The FIN must be out before it can be reset. */
  #resetsAfterFin = false;
  #code: string | undefined;
  /** Writes that libuv holds. */
  #pending = 0;
  /** As it was when last looked at; from the close on what never reached the kernel. */
  #queued = 0;
  #peer: PeerName | undefined;
  watchedAt = -1;

  /** Connected already, unless it is said to be `connecting`. */
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
    this.#tell('onConnect');
    if (this.#wantsToRead) this.readStart();
    if (this.#fin === 'wanted' && this.#pending === 0) this.#sendFin();
  }

  limitReadBytes(bytes: number): void {
    this.#most = Math.max(1, bytes);
    // A stream that reads already takes the new size with the read after the next one.
    if (!this.#isOpen) this.#window = Math.min(this.#most, NARROW_READ_BYTES);
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
    if (this.#nagle !== 'off') this.#hurry(bytes.length);
    if (this.#isClosed) {
      this.#queued += bytes.length;
    } else if (bytes.length <= MAX_COPIED_WRITE_BYTES) {
      // A small one is tried by libuv itself, on a copy that it may keep.
      if (this.#give(copies.copy(bytes))) copies.keep();
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

  /** Most peers close as soon as they have their answer, and then one close does for both. */
  finish(): void {
    if (this.#fin === 'wanted' && this.#pending === 0 && !this.#isClosed) this.#sendFin();
  }

  reset(): void {
    if (this.#isClosed) return;
    this.#seal(undefined);
    // libuv refuses it while a FIN waits for its turn, and the descriptor would leak; it is sent within this turn.
    if (this.#fin === 'sending') this.#resetsAfterFin = true;
    else this.#resetNow();
  }

  detachSocket(unread: Uint8Array): Socket {
    if (this.#isClosed || this.#pending > 0 || this.#fin !== 'none')
      throw new Error('a stream in use was to be given away');
    // While it can still be asked.
    this.#peerName();
    if (this.#isPolling) this.#stopPolling();
    this.#seal(undefined);
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
    const window = Math.min(this.#most, isWide ? WIDE_READ_BYTES : NARROW_READ_BYTES);
    if (window === this.#window) return undefined;
    this.#window = window;
    return bufferOf(window);
  }

  end(): void {
    this.#hasEnded = true;
    this.#isPolling = false;
    this.#tell('onEnd');
    if (this.#isClosed) return;
    if (this.#fin === 'sent' || (this.#fin === 'wanted' && this.#pending === 0)) this.#close(undefined);
    else paused.watch(this);
  }

  written(status: number): void {
    this.#pending -= 1;
    if (this.#isClosed) return;
    if (status < 0) {
      // libuv has forgotten by now how much of it went out: what was known last stands.
      this.#pending = 0;
      this.fail(status);
      return;
    }
    this.#queued = this.#pending === 0 ? 0 : this.#handle.writeQueueSize;
    if (this.#pending > 0) return;
    this.#tell('onDrain');
    if (this.#fin === 'wanted' && this.#pending === 0 && !this.#isClosed) this.#sendFin();
  }

  finished(status: number): void {
    this.#fin = 'sent';
    if (this.#resetsAfterFin) this.#resetNow();
    else if (this.#isClosed) return;
    else if (status < 0) this.fail(status);
    else if (this.#hasEnded) this.#close(undefined);
  }

  /** The connection is broken: nobody has to be told of it by a RST. */
  fail(error: number): void {
    if (!this.#isClosed) this.#close(getSystemErrorName(error));
  }

  resumeReading(): void {
    this.#hasYielded = false;
    if (this.#wantsToRead) this.readStart();
  }

  /** Whether nothing would be noticed now if the peer reset. */
  get isReadPaused(): boolean {
    return !this.#isClosed && !this.#isConnecting && (this.#hasEnded || !this.#wantsToRead);
  }

  /** A write of no bytes: fails on a broken connection, and sends nothing on another. */
  probe(): void {
    if (this.#pending > 0 || this.#fin !== 'none') return;
    const result = this.#handle.writeBuffer(null, received.first(0));
    if (typeof result === 'number' && result < 0) this.fail(result);
  }

  emitClose(): void {
    this.#events?.onClose(this, this.#code);
  }

  /** A system call: made once, and only for who asks. */
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

  #hurry(length: number): void {
    if (this.#nagle === 'unused' && length <= MAX_SEGMENT_BYTES) {
      this.#nagle = 'used';
      return;
    }
    this.#nagle = 'off';
    if (!this.#isClosed) this.#handle.setNoDelay(true);
  }

  /** Whether libuv keeps `bytes`, wholly or in part. */
  #give(bytes: Uint8Array): boolean {
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
      if (!this.#give(rest)) pendingWrites.giveBack(rest);
    }
  }

  /** libuv stops reading at once, and does not fill the buffer up to 32 times in a row. */
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
    // With the peer's FIN in, and nothing queued, close(2) sends the same FIN and saves a request.
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
    this.#seal(code);
    this.#handle.close();
    closingStreams.add(this);
  }

  #resetNow(): void {
    if (this.#handle.reset() !== 0) this.#handle.close();
    closingStreams.add(this);
  }

  /** From here on nothing is read, written or told but the close. */
  #seal(code: string | undefined): void {
    if (this.#pending > 0) this.#queued = this.#handle.writeQueueSize;
    this.#isClosed = true;
    this.#isPolling = false;
    this.#code = code;
    paused.forget(this);
  }

  #tell(event: 'onConnect' | 'onEnd' | 'onDrain'): void {
    try {
      // Written out: for a name that varies V8 looks into a hash table.
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
