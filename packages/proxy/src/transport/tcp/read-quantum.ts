import type { Window } from '../tcp-transport.ts';
import { lastReader } from './loop-iteration.ts';
import { NARROW_READ_BYTES, WIDE_READ_BYTES } from './read-memory.ts';
import { totalQueuedBytes } from './write-queue.ts';

/** How many times in a row a stream must fill the narrow buffer, while no other stream reads, to get the wide buffer. */
const MIN_FULL_READS_TO_WIDEN = 4;
/** While the streams of this thread have queued this many bytes in total, none reads widely, because wide reads might be queued as well. */
const MAX_QUEUED_BYTES_TO_WIDEN = 33_554_432;
const READ_BYTES: Readonly<Record<Window, number>> = { full: NARROW_READ_BYTES, reduced: 32_768, small: 8_192 };

/** How many bytes one stream reads at once. */
export class ReadQuantum {
  /** The maximum size of the next read. */
  bytes: number = NARROW_READ_BYTES;
  #maxBytes = Number.POSITIVE_INFINITY;
  #window: Window = 'full';
  /** How many times in a row the stream has filled its read buffer while no other stream has read. */
  #fullReads = 0;
  /** Whether a read has ever filled the narrow buffer. */
  #isFast = false;

  /** Sets the maximum for a rate-limited connection. */
  limit(bytes: number): void {
    this.#maxBytes = Math.max(1, bytes);
    this.bytes = Math.min(this.#maxBytes, this.bytes);
  }

  setWindow(window: Window): void {
    this.#window = window;
    this.#fullReads = 0;
    this.bytes = Math.min(this.#maxBytes, READ_BYTES[window]);
  }

  /**
   * Adapts the size of the next read, after `reader` has read `count` bytes. Returns true if a read filled the narrow buffer for
   * the first time.
   */
  adapt(reader: unknown, count: number): boolean {
    const isAlone = lastReader.stream === reader;
    lastReader.stream = reader;
    if (this.#window !== 'full') return false;
    this.#fullReads = isAlone && count >= NARROW_READ_BYTES ? this.#fullReads + 1 : 0;
    const isWide = this.#fullReads >= MIN_FULL_READS_TO_WIDEN && totalQueuedBytes() < MAX_QUEUED_BYTES_TO_WIDEN;
    this.bytes = Math.min(this.#maxBytes, isWide ? WIDE_READ_BYTES : NARROW_READ_BYTES);
    if (this.#isFast || count < NARROW_READ_BYTES) return false;
    this.#isFast = true;
    return true;
  }
}
