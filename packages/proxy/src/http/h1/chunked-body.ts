import { CR, HEX_VALUE, LF } from './byte-classes.ts';
import { BEFORE_EXTENSION, nextExtensionState } from './chunk-extension.ts';
import { FieldLineParser } from './field-lines.ts';
import type { HeadFields } from './head-fields.ts';
import type { ChunkRefusal } from './refusals.ts';

/** The size of a trailer section, up to and including its empty line. */
export const MAX_TRAILER_BYTES: number = 8 * 1024;
/** The size of all chunk extensions of one body: RFC 9112 §7.1.1 asks for a limit per message. */
export const MAX_CHUNK_EXTENSION_BYTES: number = 8 * 1024;
/** Enough for 2^53 − 1, and a bound for leading zeros. */
const MAX_SIZE_DIGITS = 16;

// What the next byte belongs to.
const SIZE_START = 0;
const SIZE = 1;
const EXTENSION = 2;
const SIZE_LF = 3;
const DATA = 4;
const DATA_CR = 5;
const DATA_LF = 6;
const TRAILER_START = 7;
const LAST_LF = 8;
const TRAILERS = 9;

/**
 * Finds the data and the end of a chunked body (RFC 9112 §7.1) in bytes that arrive in any parts. Chunk extensions are
 * checked and dropped. Trailer fields are copied into memory of their own, so the caller never has to keep bytes. One
 * instance is allocated per connection and direction.
 */
export class ChunkedBody {
  /** The data of the last `data`. */
  dataStart = 0;
  dataEnd = 0;
  /** The position of the next byte to scan: after `data`, the end of the data; after `done`, the end of the body. */
  position = 0;
  #state = SIZE_START;
  #size = 0;
  #digits = 0;
  #extensionState = BEFORE_EXTENSION;
  #extensionBytes = 0;
  #trailers: TrailerSection | undefined;

  /** The trailer fields after `done`; undefined if the body has none. The positions refer to `fields.bytes`. */
  get trailers(): HeadFields | undefined {
    return this.#trailers?.fields;
  }

  /** Prepares for the next body. Frees the memory of the trailers. */
  reset(): void {
    this.#state = SIZE_START;
    this.#size = 0;
    this.#digits = 0;
    this.#extensionBytes = 0;
    this.#trailers = undefined;
  }

  /**
   * Scans the bytes from `at` to `end` (exclusive) up to the next range of data. `data`: relay `dataStart` to `dataEnd`,
   * and continue at `position`. `more`: all bytes are consumed. `done`: the body ends at `position`. A refusal: the end
   * of the body is unknown, so both connections must be closed. A data range may be a part of a chunk. After `done` and
   * after a refusal, only `reset` may be called.
   */
  next(bytes: Uint8Array, at: number, end: number): 'data' | 'more' | 'done' | ChunkRefusal {
    let position = at;
    while (position < end) {
      switch (this.#state) {
        case DATA:
          return this.#takeData(position, end);
        case TRAILERS:
          return this.#takeTrailers(bytes, position, end);
        case LAST_LF:
          if (bytes[position] !== LF) return 'invalid-line-ending';
          this.position = position + 1;
          return 'done';
        case TRAILER_START:
          if (bytes[position] !== CR) {
            this.#state = TRAILERS;
            continue;
          }
          this.#state = LAST_LF;
          break;
        default: {
          const refusal = this.#takeFramingByte(bytes[position] as number);
          if (refusal !== undefined) return refusal;
        }
      }
      position += 1;
    }
    this.position = position;
    return 'more';
  }

  #takeData(start: number, end: number): 'data' {
    const dataEnd = this.#size < end - start ? start + this.#size : end;
    this.#size -= dataEnd - start;
    if (this.#size === 0) this.#state = DATA_CR;
    this.dataStart = start;
    this.dataEnd = dataEnd;
    this.position = dataEnd;
    return 'data';
  }

  #takeTrailers(bytes: Uint8Array, start: number, end: number): 'more' | 'done' | ChunkRefusal {
    this.#trailers ??= new TrailerSection();
    const result = this.#trailers.parse(bytes, start, end);
    this.position = result === 'done' ? start + this.#trailers.consumed : end;
    return result;
  }

  /** Takes one byte of a line with a chunk size, or of the CRLF after the data. */
  #takeFramingByte(byte: number): ChunkRefusal | undefined {
    switch (this.#state) {
      case SIZE_START:
      case SIZE:
        return this.#takeSizeByte(byte);
      case EXTENSION:
        return this.#takeExtensionByte(byte);
      case SIZE_LF:
        // RFC 9112 §7.1 has no bare LF, and a CR inside of the line is ambiguous.
        if (byte !== LF) return 'invalid-line-ending';
        this.#state = this.#size === 0 ? TRAILER_START : DATA;
        return undefined;
      case DATA_CR:
        // RFC 9112 §7.1: CRLF follows the data. Other bytes mean that the sender counted differently.
        if (byte !== CR) return 'invalid-chunk-ending';
        this.#state = DATA_LF;
        return undefined;
      default:
        if (byte !== LF) return 'invalid-chunk-ending';
        this.#state = SIZE_START;
        this.#digits = 0;
        return undefined;
    }
  }

  #takeSizeByte(byte: number): ChunkRefusal | undefined {
    const value = HEX_VALUE[byte] as number;
    if (value === 255) return this.#endSize(byte);
    this.#state = SIZE;
    this.#digits += 1;
    this.#size = this.#size * 16 + value;
    // RFC 9112 §7.1: a recipient must prevent overflows of the size.
    const isTooLarge = this.#digits > MAX_SIZE_DIGITS || this.#size > Number.MAX_SAFE_INTEGER;
    return isTooLarge ? 'chunk-size-too-large' : undefined;
  }

  #endSize(byte: number): ChunkRefusal | undefined {
    // RFC 9112 §7.1: a chunk size is at least one digit without sign or prefix.
    if (this.#state === SIZE_START) return 'invalid-chunk-size';
    if (byte === CR) {
      this.#state = SIZE_LF;
      return undefined;
    }
    this.#state = EXTENSION;
    this.#extensionState = nextExtensionState(BEFORE_EXTENSION, byte);
    if (this.#extensionState === -1) return byte === LF ? 'invalid-line-ending' : 'invalid-chunk-size';
    return this.#countExtensionByte();
  }

  #takeExtensionByte(byte: number): ChunkRefusal | undefined {
    this.#extensionState = nextExtensionState(this.#extensionState, byte);
    if (this.#extensionState === -1) return 'invalid-chunk-extension';
    if (byte === CR) {
      this.#state = SIZE_LF;
      return undefined;
    }
    return this.#countExtensionByte();
  }

  #countExtensionByte(): ChunkRefusal | undefined {
    this.#extensionBytes += 1;
    return this.#extensionBytes > MAX_CHUNK_EXTENSION_BYTES ? 'chunk-extensions-too-large' : undefined;
  }
}

/** The trailer fields of one body, in memory that exists only for bodies with trailers. */
class TrailerSection {
  readonly #memory: Uint8Array = new Uint8Array(MAX_TRAILER_BYTES);
  readonly #lines: FieldLineParser = new FieldLineParser();
  #length = 0;
  /** After `done`, how many of the bytes of the last call belong to the section. */
  consumed = 0;

  get fields(): HeadFields {
    return this.#lines.fields;
  }

  parse(bytes: Uint8Array, start: number, end: number): 'more' | 'done' | ChunkRefusal {
    const lengthBefore = this.#length;
    this.#length = Math.min(lengthBefore + end - start, MAX_TRAILER_BYTES);
    this.#memory.set(bytes.subarray(start, start + this.#length - lengthBefore), lengthBefore);
    const result = this.#lines.parse(this.#memory, this.#length);
    if (result === 'more' && this.#length === MAX_TRAILER_BYTES) return 'trailers-too-large';
    this.consumed = this.#lines.position - lengthBefore;
    return result;
  }
}

const HEX_DIGITS: Uint8Array = Uint8Array.from('0123456789abcdef', (char) => char.charCodeAt(0));

/**
 * Writes the line before the data of a chunk (`size` in hexadecimal digits and CRLF) into `memory` at `at`. Returns the
 * position after the line. The line has at most 16 bytes. After the data, the caller writes CRLF. The last chunk has
 * size 0.
 */
export function writeChunkHeader(memory: Uint8Array, at: number, size: number): number {
  let digits = 1;
  for (let rest = size; rest >= 16; rest = Math.floor(rest / 16)) digits += 1;
  const end = at + digits;
  for (let index = end - 1, rest = size; index >= at; index -= 1, rest = Math.floor(rest / 16)) {
    memory[index] = HEX_DIGITS[rest % 16] as number;
  }
  memory[end] = CR;
  memory[end + 1] = LF;
  return end + 2;
}
