// How the kernel sends the bytes of a socket. `TCP_NOTSENT_LOWAT` of tcp(7) limits how many unsent bytes it keeps. Without a
// limit the kernel buffers several megabytes per slow reader, at the cost of all tenants.
import { IPPROTO_TCP, TCP_NODELAY, TCP_NOTSENT_LOWAT } from '../syscalls/layouts.ts';
import { setOption, unacknowledgedSequence } from '../syscalls/sockets.ts';
import type { Window } from '../tcp-transport.ts';
import { NARROW_READ_BYTES } from './read-memory.ts';

/** The limit of a full window. */
const MAX_UNSENT_BYTES = 131_072;
/** The limit of the other windows: the kernel takes bytes only when it has sent all earlier bytes. */
const MIN_UNSENT_BYTES = 1;
/** The limit of a wide buffer, for a stream that gets the bytes of wide reads. A wide buffer wakes this worker less often. */
const MAX_UNSENT_BYTES_WIDE = 2_097_152;
/** After a shorter write, a wide buffer gets the usual limit again. */
const MIN_WIDE_WRITE_BYTES = 65_536;
/** How many streams of a worker may have a wide buffer. Limits the memory that slow readers can take. */
const MAX_WIDE_BUFFERS = 16;
/** A write of at most this many bytes usually fits into one segment. */
const MAX_SINGLE_SEGMENT_BYTES = 1_024;

let wideBuffers = 0;

/** Sets the limit of a socket. Accepted connections inherit the limit of their listen socket. */
export function limitUnsentBytes(descriptor: number, window: Window): number {
  return setLimit(descriptor, window === 'full' ? MAX_UNSENT_BYTES : MIN_UNSENT_BYTES);
}

function setLimit(descriptor: number, bytes: number): number {
  return setOption(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes);
}

/** The kernel's send buffer of one stream. */
export class SendBuffer {
  #window: Window;
  #isWide = false;
  /** Whether Nagle's algorithm is off. */
  #hasNoDelay: boolean;
  #hasWritten = false;

  constructor({ window, hasNoDelay }: { readonly window: Window; readonly hasNoDelay: boolean }) {
    this.#window = window;
    this.#hasNoDelay = hasNoDelay;
  }

  get window(): Window {
    return this.#window;
  }

  setWindow(descriptor: number, window: Window): void {
    this.release();
    this.#window = window;
    limitUnsentBytes(descriptor, window);
  }

  /**
   * To be called before each write. Makes the buffer wide for a long write, unless too many streams have a wide buffer. A
   * wide buffer gets the usual limit again when it holds no more bytes than this limit.
   */
  prepareWrite(descriptor: number, length: number): void {
    if (!this.#hasNoDelay) this.#turnOffNagle(descriptor, length);
    if (this.#isWide) {
      if (length < MIN_WIDE_WRITE_BYTES && unacknowledgedSequence(descriptor) <= MAX_UNSENT_BYTES)
        this.setWindow(descriptor, this.#window);
    } else if (length > NARROW_READ_BYTES && this.#window === 'full' && wideBuffers < MAX_WIDE_BUFFERS) {
      wideBuffers += 1;
      this.#isWide = true;
      setLimit(descriptor, MAX_UNSENT_BYTES_WIDE);
    }
  }

  /** Turns Nagle's algorithm off, unless this is the first write and short: TCP sends such a write at once anyway. */
  #turnOffNagle(descriptor: number, length: number): void {
    this.#hasNoDelay = this.#hasWritten || length > MAX_SINGLE_SEGMENT_BYTES;
    this.#hasWritten = true;
    if (this.#hasNoDelay) setOption(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  }

  /** Must be called when the stream has closed. */
  release(): void {
    if (this.#isWide) wideBuffers -= 1;
    this.#isWide = false;
  }
}
