// The memory into which all streams of this thread read.
import { NativeMemory } from '../syscalls/ffi.ts';

/** The read quantum while several streams are active. */
export const NARROW_READ_BYTES = 262_144;
/** The read quantum of a stream that reads alone. A large quantum wakes the peers less often; waking them is half of the cost per byte. */
export const WIDE_READ_BYTES = 4_194_304;
/** Views up to this length are cached, because most reads are short, and a cached view saves an allocation per read. */
const MAX_CACHED_VIEW_BYTES = 4_096;

export const readMemory: NativeMemory = new NativeMemory(WIDE_READ_BYTES);
const views: (Uint8Array | undefined)[] = [];

/** Returns a view of the first `length` bytes of `readMemory`. Two reads of the same length may get the same view. */
export function bytesRead(length: number): Uint8Array {
  if (length > MAX_CACHED_VIEW_BYTES) return readMemory.bytes.subarray(0, length);
  let view = views[length];
  if (view === undefined) {
    view = readMemory.bytes.subarray(0, length);
    // V8 would store an array with gaps as a dictionary.
    while (views.length < length) views.push(undefined);
    views[length] = view;
  }
  return view;
}
