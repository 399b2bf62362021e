// The memory into which all streams of this thread read, and the memory with the bytes that they write.
import { NativeMemory } from '../syscalls/ffi.ts';
import type { WriteMemory } from '../tcp-transport.ts';

/** The read quantum while several streams are active. */
export const NARROW_READ_BYTES = 262_144;
/** The read quantum of a stream that reads alone. A large quantum wakes the peers less often; waking them is half of the cost per byte. */
export const WIDE_READ_BYTES = 4_194_304;
const WRITE_BYTES = 131_072;
const RECORD_BYTES = 262_144;
/** Views up to this length are cached, because most reads and writes are short, and a cached view saves an allocation. */
const MAX_CACHED_VIEW_BYTES = 4_096;

/** Native memory, and views that begin where the memory begins. */
class ViewedMemory implements WriteMemory {
  readonly native: NativeMemory;
  readonly #views: (Uint8Array | undefined)[] = [];

  constructor(length: number) {
    this.native = new NativeMemory(length);
  }

  get bytes(): Uint8Array {
    return this.native.bytes;
  }

  view(length: number): Uint8Array {
    if (length > MAX_CACHED_VIEW_BYTES) return this.native.bytes.subarray(0, length);
    const views = this.#views;
    let view = views[length];
    if (view === undefined) {
      view = this.native.bytes.subarray(0, length);
      // V8 would store an array with gaps as a dictionary.
      while (views.length < length) views.push(undefined);
      views[length] = view;
    }
    return view;
  }

  /** Whether these bytes are a cached view. False for some bytes of this memory, but faster than a look at their buffer. */
  hasCached(bytes: Uint8Array): boolean {
    const { length } = bytes;
    return length <= MAX_CACHED_VIEW_BYTES && this.#views[length] === bytes;
  }
}

const reads = new ViewedMemory(WIDE_READ_BYTES);
const writes = new ViewedMemory(WRITE_BYTES);
const records = new ViewedMemory(RECORD_BYTES);

export const readMemory: NativeMemory = reads.native;
/** See `TcpTransport.writeMemory`. */
export const writeMemory: WriteMemory = writes;

/** The memory for encrypted TLS records that are sent next. */
export const recordMemory: NativeMemory = records.native;

/** Returns a view of the first `length` bytes of `recordMemory`. */
export function recordBytes(length: number): Uint8Array {
  return records.view(length);
}

/** Returns a view of the first `length` bytes of `readMemory`. Two reads of the same length may get the same view. */
export function bytesRead(length: number): Uint8Array {
  return reads.view(length);
}

/** Returns the native memory at whose start these bytes are, or undefined if they are elsewhere. */
export function memoryWith(bytes: Uint8Array): NativeMemory | undefined {
  if (reads.hasCached(bytes)) return reads.native;
  if (writes.hasCached(bytes)) return writes.native;
  if (records.hasCached(bytes)) return records.native;
  if (bytes.byteOffset > 0) return undefined;
  const { buffer } = bytes;
  if (buffer === reads.bytes.buffer) return reads.native;
  if (buffer === writes.bytes.buffer) return writes.native;
  return buffer === records.bytes.buffer ? records.native : undefined;
}
