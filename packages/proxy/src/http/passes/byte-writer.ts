import { IS_VALUE_BYTE, TOKEN_LOWER } from '../h1/byte-classes.ts';

/** Up to this length a loop is faster than `set` of a whole array. */
const MAX_LOOP_ARRAY_BYTES = 16;
/** Up to this length a loop is faster than `set` of a part of an array, which needs a view of this part. */
const MAX_LOOP_RANGE_BYTES = 32;
/** The number of decimal digits of `Number.MAX_SAFE_INTEGER`. */
const MAX_DIGITS = 16;
const HEX_DIGITS: Uint8Array = asciiBytes('0123456789abcdef');

/**
 * Writes bytes one after the other into memory that the caller owns. If the memory is too small, the writer becomes
 * full and ignores everything that follows, so that callers check only once, at the end.
 */
export class ByteWriter {
  memory: Uint8Array;
  /** The position after the last written byte, or -1 if the memory was too small. */
  at = 0;

  constructor(memory: Uint8Array) {
    this.memory = memory;
  }

  /** Continues at position `at` of `memory`. */
  restart(memory: Uint8Array, at: number): void {
    this.memory = memory;
    this.at = at;
  }

  byte(value: number): void {
    if (this.#reserve(1)) this.memory[this.at - 1] = value;
  }

  bytes(source: Uint8Array): void {
    const { length } = source;
    if (!this.#reserve(length)) return;
    if (length <= MAX_LOOP_ARRAY_BYTES) this.#copy(source, 0, length);
    else this.memory.set(source, this.at - length);
  }

  /** Copies the bytes from `start` to `end` (exclusive) of `source`. */
  range(source: Uint8Array, start: number, end: number): void {
    const length = end - start;
    if (!this.#reserve(length)) return;
    if (length <= MAX_LOOP_RANGE_BYTES) this.#copy(source, start, end);
    else this.memory.set(source.subarray(start, end), this.at - length);
  }

  /** Writes a text that contains only ASCII characters. */
  ascii(text: string): void {
    const { length } = text;
    if (!this.#reserve(length)) return;
    const { memory } = this;
    const start = this.at - length;
    for (let index = 0; index < length; index += 1) memory[start + index] = text.charCodeAt(index);
  }

  /** Writes a whole number from 0 to `Number.MAX_SAFE_INTEGER` in decimal digits. */
  decimal(value: number): void {
    let digits = 1;
    for (let bound = 10; digits < MAX_DIGITS && value >= bound; bound *= 10) digits += 1;
    if (!this.#reserve(digits)) return;
    let rest = value;
    for (let to = this.at - 1, start = this.at - digits; to >= start; to -= 1) {
      const tenth = Math.floor(rest / 10);
      this.memory[to] = 0x30 + (rest - tenth * 10);
      rest = tenth;
    }
  }

  /** Writes the first `count` bytes of `source` as two lower-case hexadecimal digits each. */
  hex(source: Uint8Array, count: number): void {
    if (!this.#reserve(2 * count)) return;
    let to = this.at - 2 * count;
    for (let from = 0; from < count; from += 1) {
      const byte = source[from] as number;
      this.memory[to] = HEX_DIGITS[byte >> 4] as number;
      this.memory[to + 1] = HEX_DIGITS[byte & 15] as number;
      to += 2;
    }
  }

  /** Copies bytes to the reserved memory before the position. */
  #copy(source: Uint8Array, start: number, end: number): void {
    const { memory } = this;
    let to = this.at - end + start;
    for (let from = start; from < end; from += 1, to += 1) memory[to] = source[from] as number;
  }

  /** Moves the position by `count` bytes. Returns false if the memory is too small. */
  #reserve(count: number): boolean {
    const { at } = this;
    if (at < 0) return false;
    if (at + count > this.memory.length) {
      this.at = -1;
      return false;
    }
    this.at = at + count;
    return true;
  }
}

/** Returns the bytes of a text that contains only ASCII characters. */
export function asciiBytes(text: string): Uint8Array {
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

/**
 * Returns the bytes of one field line with its CRLF, for constants and for lines that are built once per route or
 * endpoint. Characters above U+007F are encoded as UTF-8. Throws a RangeError if the name is not a token or if the value
 * contains a control character or starts or ends with whitespace.
 */
export function fieldLine(name: string, value: string): Uint8Array {
  if (!isFieldName(name)) throw new RangeError(`invalid field name ${JSON.stringify(name)}: expected a token`);
  if (!isFieldValue(value)) throw new RangeError(`invalid value of field "${name}": expected text without controls`);
  return new TextEncoder().encode(`${name}: ${value}\r\n`);
}

/** Whether the text is a token (RFC 9110 §5.1). */
export function isFieldName(name: string): boolean {
  return name !== '' && [...name].every((char) => (TOKEN_LOWER[char.charCodeAt(0)] ?? 0) !== 0);
}

/** Whether the text is a field value without whitespace around it (RFC 9110 §5.5). */
export function isFieldValue(value: string): boolean {
  return value.trim() === value && new TextEncoder().encode(value).every((byte) => IS_VALUE_BYTE[byte] === 1);
}
