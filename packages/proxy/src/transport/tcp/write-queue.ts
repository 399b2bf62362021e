import { NativeMemory } from '../syscalls/ffi.ts';
import { transmit, transmitRange } from '../syscalls/sockets.ts';
import { memoryWith, readMemory } from './read-memory.ts';

/** The size of the smallest piece of memory in the pool. Larger pieces are powers of two. */
const MIN_PIECE_BYTES = 8_192;
/** The size of the largest piece. A longer write is queued in several pieces. */
const MAX_PIECE_BYTES = 262_144;
/** How many bytes of free pieces are kept for reuse, so that a slow reader causes no garbage collection. */
const MAX_FREE_BYTES = 4_194_304;
const EAGAIN = -11;

const free = new Map<number, NativeMemory[]>();
let freeBytes = 0;
let queuedBytes = 0;

/** Returns the number of bytes that all streams of this thread have queued. */
export function totalQueuedBytes(): number {
  return queuedBytes;
}

interface Piece {
  readonly memory: NativeMemory;
  start: number;
  end: number;
}

/** The written bytes of one stream that the kernel has not taken yet, in the order of the writes. */
export class WriteQueue {
  readonly #pieces: Piece[] = [];
  #first = 0;
  #length = 0;

  /** The number of queued bytes. */
  get length(): number {
    return this.#length;
  }

  /** The size of the memory that holds the queued bytes. */
  get memoryBytes(): number {
    let bytes = 0;
    for (let index = this.#first; index < this.#pieces.length; index += 1)
      bytes += (this.#pieces[index] as Piece).memory.bytes.length;
    return bytes;
  }

  /** Copies the bytes to the end of the queue. */
  push(bytes: Uint8Array): void {
    for (let start = 0; start < bytes.length; ) {
      let piece = this.#pieces.at(-1);
      if (piece === undefined || piece.end === piece.memory.bytes.length) {
        piece = { memory: takeMemory(bytes.length - start), start: 0, end: 0 };
        this.#pieces.push(piece);
      }
      const length = Math.min(bytes.length - start, piece.memory.bytes.length - piece.end);
      piece.memory.bytes.set(bytes.subarray(start, start + length), piece.end);
      piece.end += length;
      start += length;
    }
    this.#length += bytes.length;
    queuedBytes += bytes.length;
  }

  /** Passes queued bytes to the kernel until the queue is empty or the kernel takes no more. Returns 0 or a negative errno. */
  flush(descriptor: number): number {
    while (this.#first < this.#pieces.length) {
      const piece = this.#pieces[this.#first] as Piece;
      const length = piece.end - piece.start;
      const taken = transmitRange(descriptor, piece.memory, piece.start, length);
      if (taken < 0) return taken === EAGAIN ? this.#compact() : taken;
      this.#length -= taken;
      queuedBytes -= taken;
      if (taken < length) {
        piece.start += taken;
        return this.#compact();
      }
      giveBackMemory(piece.memory);
      this.#first += 1;
    }
    this.#pieces.length = 0;
    this.#first = 0;
    return 0;
  }

  /** Discards the queued bytes. */
  clear(): void {
    for (const { memory } of this.#pieces.slice(this.#first)) giveBackMemory(memory);
    this.#pieces.length = 0;
    this.#first = 0;
    queuedBytes -= this.#length;
    this.#length = 0;
  }

  #compact(): 0 {
    if (this.#first > 0) this.#pieces.splice(0, this.#first);
    this.#first = 0;
    return 0;
  }
}

function takeMemory(length: number): NativeMemory {
  const size = Math.min(MAX_PIECE_BYTES, Math.max(MIN_PIECE_BYTES, 2 ** Math.ceil(Math.log2(length))));
  const known = free.get(size)?.pop();
  if (known === undefined) return new NativeMemory(size);
  freeBytes -= size;
  return known;
}

function giveBackMemory(memory: NativeMemory): void {
  const size = memory.bytes.length;
  if (freeBytes + size > MAX_FREE_BYTES) return;
  freeBytes += size;
  const freeOfSize = free.get(size);
  if (freeOfSize === undefined) free.set(size, [memory]);
  else freeOfSize.push(memory);
}

/** Memory for copies of bytes that are not in native memory. */
const copyMemory = new NativeMemory(65_536);

/** Sends bytes from native memory or from any other memory. Returns how many bytes the kernel has taken, or a negative errno. */
export function transmitBytes(descriptor: number, bytes: Uint8Array): number {
  const memory = memoryWith(bytes);
  if (memory !== undefined) return transmit(descriptor, memory, bytes.length);
  if (bytes.buffer !== readMemory.bytes.buffer) return transmitCopy(descriptor, bytes);
  return transmitRange(descriptor, readMemory, bytes.byteOffset, bytes.length);
}

/**
 * Sends bytes that are not in native memory. Returns how many bytes the kernel has taken, or a negative errno. An errno other than EAGAIN
 * is returned even if the kernel has taken some bytes before.
 */
function transmitCopy(descriptor: number, bytes: Uint8Array): number {
  let sent = 0;
  while (sent < bytes.length) {
    const length = Math.min(bytes.length - sent, copyMemory.bytes.length);
    copyMemory.bytes.set(bytes.subarray(sent, sent + length));
    const taken = transmit(descriptor, copyMemory, length);
    if (taken < 0) return sent > 0 && taken === EAGAIN ? sent : taken;
    sent += taken;
    if (taken < length) break;
  }
  return sent;
}
