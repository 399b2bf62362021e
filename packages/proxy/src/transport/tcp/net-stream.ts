// A stream on a public `net.Socket`. An accepted socket emits 'data' events, and each chunk is a new buffer that a
// write may keep. A socket from `connect` reads into one shared buffer, so a write must copy the bytes.
// `SocketOperations` contains the operations that differ between plain TCP and TLS.
import { connect, type Socket } from 'node:net';
import { countSocket } from '../../limits/descriptor-count.ts';
import { countProgress } from '../progress.ts';
import type { AcceptedStream, DetachedStream, SocketAddress, StreamEvents } from '../tcp-transport.ts';
import { currentLoopIteration, lastReader, NextIterationQueue } from './loop-iteration.ts';
import { PausedStreams } from './paused-streams.ts';
import { PLAIN_SOCKET_OPERATIONS, type SocketOperations } from './socket-operations.ts';
import { emitData, emitEvent } from './stream-emitter.ts';

const READ_BUFFER_BYTES = 65_536;
/**
 * The maximum number of bytes that one stream reads in one loop iteration. Libuv alone would read up to 32 times in a
 * row.
 */
const READ_QUANTUM_BYTES = 262_144;

/** How many bytes the kernel holds at least while bytes are queued: the limit that `send-buffer.ts` sets. */
const MIN_BYTES_IN_FULL_KERNEL = 131_072;

const shared = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES);
/**
 * The chunk that `onData` is handling, unless the chunk is in the shared buffer. A write may keep this chunk without a
 * copy.
 */
let ownedChunk: Uint8Array | undefined;

const paused = new PausedStreams();
const yieldedStreams = new NextIterationQueue<NetTcpStream>((stream) => stream.resumeReading());

export function acceptedStream(socket: Socket): NetTcpStream {
  return new NetTcpStream(socket);
}

/**
 * Returns a stream on a socket with other operations, such as a TLSSocket. The stream reads nothing before `readStart`.
 */
export function streamOverSocket(socket: Socket, operations: SocketOperations, events: StreamEvents): NetTcpStream {
  const stream = new NetTcpStream(socket, operations);
  socket.pause();
  stream.accept(events);
  return stream;
}

export function connectedStream({ address, port }: SocketAddress, events: StreamEvents): NetTcpStream {
  const socket = connect({
    host: address,
    port,
    allowHalfOpen: true,
    noDelay: true,
    onread: {
      buffer: shared,
      callback: (count) => {
        stream.take(shared.subarray(0, count));
        return true;
      },
    },
  });
  countSocket(socket);
  const stream = new NetTcpStream(socket);
  stream.events = events;
  socket.on('connect', onConnect);
  socket.on('end', onEnd);
  socket.pause();
  return stream;
}

const STREAM = Symbol('stream');
/**
 * A socket with a reference to its stream. Module-level event handlers use the reference, so a connection needs no
 * closures.
 */
type OwnedSocket = Socket & { [STREAM]: NetTcpStream };

export class NetTcpStream implements AcceptedStream {
  events: StreamEvents | undefined;
  readonly #socket: Socket;
  readonly #operations: SocketOperations;
  watchedAt = -1;
  #isAccepted = false;
  isReading = false;
  #hasYielded = false;
  #hasEnded = false;
  #readLater: (() => void) | undefined;
  /** Bytes that wait for `readNow`. Only while reads are deferred. */
  #deferred: Uint8Array | undefined;
  /** The number of bytes read in the loop iteration with the number `#iteration`. */
  #bytesThisIteration = 0;
  #iteration = 0;
  /** The number of queued bytes. After a failure, the number of bytes that never reached the kernel. */
  #queued = 0;
  /**
   * The length of the oldest pending write if the kernel has taken its bytes but the socket has not reported the write
   * yet; otherwise 0.
   */
  #taken = 0;

  constructor(socket: Socket, operations: SocketOperations = PLAIN_SOCKET_OPERATIONS) {
    this.#socket = socket;
    this.#operations = operations;
    (socket as OwnedSocket)[STREAM] = this;
    socket.on('error', onError);
    socket.on('close', onClose);
  }

  get remoteAddress(): string {
    return this.#socket.remoteAddress ?? '';
  }

  get remotePort(): number {
    return this.#socket.remotePort ?? 0;
  }

  get queuedBytes(): number {
    return this.#queued;
  }

  get awaitsDrain(): boolean {
    return this.#queued > 0;
  }

  unacknowledgedBytes(): number {
    return this.queuedBytes;
  }

  /** An estimate. */
  bufferedBytes(): number {
    return this.#queued === 0 ? 0 : this.#queued + MIN_BYTES_IN_FULL_KERNEL;
  }

  get maxWriteBytes(): number {
    return this.#operations.maxWriteBytes ?? Number.POSITIVE_INFINITY;
  }

  accept(events: StreamEvents): void {
    const isHandedOn = this.events !== undefined;
    this.events = events;
    if (isHandedOn) return;
    this.#isAccepted = true;
    this.#socket.on('data', onData);
    this.#socket.on('end', onEnd);
  }

  deferReads(readLater: (() => void) | undefined): void {
    this.#readLater = readLater;
  }

  readNow(): void {
    const bytes = this.#deferred;
    if (bytes === undefined || !this.isReading) return;
    this.#deferred = undefined;
    emitData(this, bytes);
    if (this.isReading && !this.#hasYielded) this.#socket.resume();
  }

  readStart(): void {
    this.isReading = true;
    if (this.#hasYielded) return;
    if (this.#deferred === undefined) this.#socket.resume();
    else this.#yieldTurn();
  }

  readStop(): void {
    this.isReading = false;
    this.#socket.pause();
    if (this.#isAccepted) paused.watch(this);
  }

  get isReadPaused(): boolean {
    return (this.#hasEnded || !this.isReading) && !this.#socket.destroyed;
  }

  probe(): void {
    if (!this.#socket.writableEnded && this.#socket.writableLength === 0) this.#operations.probe(this.#socket);
  }

  write(bytes: Uint8Array): number {
    const socket = this.#socket;
    const before = this.#queued;
    const isFirst = socket.writableLength === 0;
    if (!socket.destroyed)
      this.#operations.write(socket, bytes, { mayKeep: bytes === ownedChunk, onWritten: this.#onWritten });
    if (hasFailed(socket)) {
      this.#queued = before + bytes.length;
    } else {
      if (isFirst && this.#operations.hasTaken?.(socket, bytes.length)) this.#taken = bytes.length;
      this.#queued = socket.writableLength - this.#taken;
    }
    return this.#queued;
  }

  shutdown(): void {
    this.#socket.end();
  }

  reset(): void {
    if (!this.#socket.destroyed) this.#operations.reset(this.#socket);
  }

  detach(): DetachedStream {
    const socket = this.#socket;
    socket.pause();
    // Reading the address makes the socket cache it, so `remoteAddress` still returns the address later.
    void socket.remoteAddress;
    socket.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose);
    paused.forget(this);
    this.events = undefined;
    return { socket };
  }

  /** Resets the connection. `onClose` reports `code`, because the socket itself has no error. */
  fail(code: string): void {
    this.setCloseCode(code);
    this.reset();
  }

  /** Sets the code that `onClose` will report. */
  setCloseCode(code: string): void {
    codes.set(this.#socket, code);
  }

  readonly #onWritten = (): void => {
    this.#taken = 0;
    if (this.#queued === 0 || hasFailed(this.#socket)) return;
    this.#queued = this.#socket.writableLength;
    if (this.#queued === 0) this.emit('onDrain');
  };

  take(bytes: Uint8Array): void {
    countProgress();
    lastReader.stream = this;
    const iteration = currentLoopIteration();
    if (this.#iteration !== iteration) this.#bytesThisIteration = 0;
    this.#iteration = iteration;
    this.#bytesThisIteration += bytes.length;
    // Another read of `READ_BUFFER_BYTES` could exceed the quantum.
    if (this.#bytesThisIteration > READ_QUANTUM_BYTES - READ_BUFFER_BYTES && !this.#hasYielded) this.#yieldTurn();
    if (this.#readLater === undefined) emitData(this, bytes);
    else this.#defer(bytes, this.#readLater);
  }

  #defer(bytes: Uint8Array, readLater: () => void): void {
    this.#deferred = this.#deferred === undefined ? bytes : Buffer.concat([this.#deferred, bytes]);
    readLater();
    if (this.#deferred !== undefined) this.#socket.pause();
  }

  #yieldTurn(): void {
    this.#hasYielded = true;
    this.#socket.pause();
    yieldedStreams.add(this);
  }

  resumeReading(): void {
    this.#hasYielded = false;
    if (!this.isReading) return;
    if (this.#deferred === undefined) this.#socket.resume();
    else if (this.#readLater === undefined) this.readNow();
    else this.#readLater();
  }

  /** Handles the peer's FIN. All data before the FIN has been read. */
  end(): void {
    const fault = this.#operations.endFault?.(this.#socket);
    if (fault !== undefined) {
      this.fail(fault);
      return;
    }
    this.#hasEnded = true;
    this.emit('onEnd');
    if (this.#isAccepted) paused.watch(this);
  }

  emit(event: 'onConnect' | 'onEnd' | 'onDrain'): void {
    emitEvent(this, event);
  }
}

/**
 * Returns whether the socket has failed. The `writableLength` of a failed socket decreases although nothing is sent.
 */
function hasFailed(socket: Socket): boolean {
  return socket.destroyed || socket.errored !== null;
}

function onConnect(this: Socket): void {
  streamOf(this).emit('onConnect');
}

function onData(this: Socket, chunk: Uint8Array): void {
  ownedChunk = chunk;
  streamOf(this).take(chunk);
  ownedChunk = undefined;
}

function onEnd(this: Socket): void {
  streamOf(this).end();
}

const codes = new WeakMap<Socket, string>();

function onError(this: Socket, error: NodeJS.ErrnoException): void {
  codes.set(this, error.code ?? error.message);
}

function onClose(this: Socket): void {
  countProgress();
  const stream = streamOf(this);
  stream.events?.onClose(stream, codes.get(this));
}

function streamOf(socket: Socket): NetTcpStream {
  return (socket as OwnedSocket)[STREAM];
}
