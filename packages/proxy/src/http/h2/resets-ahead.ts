import { FRAME, FRAME_HEADER_BYTES, MAX_STREAM_ID, readUint32 } from './protocol.ts';

/** How many frames are looked at, so that a read with thousands of frames is not looked at again and again. */
const MAX_FRAMES = 1_024;
const RST_STREAM_BYTES = 4;
const NO_BYTES: Uint8Array = new Uint8Array(0);

/**
 * The streams that the client resets in bytes that have arrived and are not processed yet. A request that its client has
 * reset already needs no endpoint (rapid reset, CVE-2023-44487).
 */
export class ResetsAhead {
  #bytes: Uint8Array = NO_BYTES;
  #hasLooked = false;
  readonly #ids: number[] = [];

  /** Must be called before the bytes of a read are processed. */
  begin(bytes: Uint8Array): void {
    this.#bytes = bytes;
    this.#hasLooked = false;
  }

  /** Must be called afterwards, so that the bytes can be freed. */
  end(): void {
    this.#bytes = NO_BYTES;
  }

  /** Whether the client resets the stream, whose head ends at `position`, where the next frame begins. */
  has(id: number, position: number): boolean {
    // An idle stream cannot be reset, so the frames before the first head of a read need no look.
    if (!this.#hasLooked) this.#lookAhead(position);
    return this.#ids.length > 0 && this.#ids.includes(id);
  }

  #lookAhead(position: number): void {
    const bytes = this.#bytes;
    const ids = this.#ids;
    this.#hasLooked = true;
    if (ids.length > 0) ids.length = 0;
    let at = position;
    for (let frames = 0; frames < MAX_FRAMES && at + FRAME_HEADER_BYTES <= bytes.length; frames += 1) {
      const length = ((bytes[at] as number) << 16) | ((bytes[at + 1] as number) << 8) | (bytes[at + 2] as number);
      const end = at + FRAME_HEADER_BYTES + length;
      if (bytes[at + 3] === FRAME.rstStream && length === RST_STREAM_BYTES && end <= bytes.length)
        ids.push(readUint32(bytes, at + 5) & MAX_STREAM_ID);
      at = end;
    }
  }
}
