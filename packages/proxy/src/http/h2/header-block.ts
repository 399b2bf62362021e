import { MAX_CONTINUATION_FRAMES, MAX_HEADER_BLOCK_BYTES } from './abuse-limits.ts';

/** A header block that arrives in several frames (RFC 9113 §4.3). Has memory only while such a block arrives. */
export class HeaderBlock {
  /** The stream of the block; 0 if no block has begun. */
  streamId = 0;
  /** The flags of HEADERS. */
  flags = 0;
  bytes: Uint8Array | undefined;
  length = 0;
  #frames = 0;

  begin(streamId: number, flags: number): void {
    this.streamId = streamId;
    this.flags = flags;
    this.length = 0;
    this.#frames = 0;
  }

  /** Appends the bytes from `start` to `end`. Returns false if the block is too long or has too many frames. */
  append(bytes: Uint8Array, start: number, end: number): boolean {
    const length = this.length + end - start;
    this.#frames += 1;
    if (length > MAX_HEADER_BLOCK_BYTES || this.#frames > MAX_CONTINUATION_FRAMES + 1) return false;
    if (this.bytes === undefined || this.bytes.length < length) {
      const larger = new Uint8Array(Math.min(MAX_HEADER_BLOCK_BYTES, 2 * length));
      if (this.bytes !== undefined) larger.set(this.bytes.subarray(0, this.length));
      this.bytes = larger;
    }
    this.bytes.set(bytes.subarray(start, end), this.length);
    this.length = length;
    return true;
  }

  end(): void {
    this.streamId = 0;
    this.bytes = undefined;
  }
}
