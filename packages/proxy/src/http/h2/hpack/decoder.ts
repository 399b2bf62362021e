import { IS_VALUE_BYTE, SPACE, TAB, TOKEN_LOWER } from '../../h1/byte-classes.ts';
import { DynamicTable } from './dynamic-table.ts';
import { huffmanDecode } from './huffman.ts';
import {
  MIN_PSEUDO_ID,
  nameIdOf,
  PSEUDO,
  STATIC_BYTES,
  STATIC_COUNT,
  STATIC_IDS,
  STATIC_NAME_START,
  STATIC_VALUE_END,
  STATIC_VALUE_START,
} from './static-table.ts';

/** The size of the dynamic table that the peer's encoder may use: the default of SETTINGS_HEADER_TABLE_SIZE. */
export const DECODER_TABLE_BYTES = 4_096;

/** Longer strings are skipped. Even the shortest string above this length is longer than the dynamic table. */
export const MAX_STRING_BYTES: number = 16 * 1024;

/**
 * The free bytes that a target needs after `at`: a name and a value of MAX_STRING_BYTES each. The shortest Huffman code
 * has 5 bits, so a string is at most 8/5 as long as its code.
 */
export const MAX_FIELD_TARGET_BYTES: number = 2 * Math.ceil((MAX_STRING_BYTES * 8) / 5) + 4;

/** Receives the decoded fields. */
export interface FieldTarget {
  /** The array to which the decoder writes. It has at least MAX_FIELD_TARGET_BYTES after `at`. */
  readonly memory: Uint8Array;
  /** Where the next field begins. If `take` does not move `at`, the next field overwrites this field. */
  readonly at: number;
  /**
   * Called with each field, which was written as `name: value` and CRLF. The name begins at `at`. `id` is the id of the
   * name (`FIELD` or `PSEUDO`). `isValid` is false if a byte of the name or the value is not allowed. Returns false if
   * the list of fields has become so long that nothing more must be decoded.
   */
  take(nameEnd: number, valueEnd: number, id: number, isValid: boolean): boolean;
  /** Called if a field is too long to be decoded. */
  skip(): void;
}

/**
 * The result of decoding a block. After `invalid` and `too-large` the connection must end, because the dynamic tables of
 * both sides differ.
 */
export type BlockResult = 'done' | 'invalid' | 'too-large';

const COLON = 0x3a;
const CR = 0x0d;
const LF = 0x0a;
/** The bits of the `meta` of a table entry: the id of the name, and what is invalid. */
const ID_MASK = 0xff;
const INVALID_NAME = 1 << 8;
const INVALID_VALUE = 1 << 9;
/** RFC 7541 §5.1 lets each implementation limit integers. Three bytes after the prefix encode every length that we take. */
const MAX_INTEGER_SHIFT = 21;
/** The result of `#string` if the string is invalid, and if the string is skipped. */
const INVALID = -1;
const SKIPPED = -2;

/** Decodes the header blocks of one direction of a connection (RFC 7541), always in the order in which they arrive. */
export class HpackDecoder {
  readonly #maxTableBytes: number;
  readonly #table: DynamicTable;
  #bytes: Uint8Array = new Uint8Array(0);
  /** The position of the next byte. */
  #at = 0;
  #end = 0;

  constructor(maxTableBytes: number = DECODER_TABLE_BYTES) {
    this.#maxTableBytes = maxTableBytes;
    this.#table = new DynamicTable(maxTableBytes);
  }

  /** The size of the dynamic table in bytes, as RFC 7541 §4.1 counts them. */
  get tableSize(): number {
    return this.#table.size;
  }

  /**
   * Decodes the complete block from `start` to `end` (exclusive). RFC 9113 §4.3: an invalid block is a connection error of
   * type COMPRESSION_ERROR.
   */
  decode(bytes: Uint8Array, start: number, end: number, target: FieldTarget): BlockResult {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
    // RFC 7541 §4.2: the size of the table changes only at the beginning of a block.
    while (this.#at < end && ((bytes[this.#at] as number) & 0xe0) === 0x20) {
      const size = this.#integer(0x1f);
      // RFC 7541 §6.3: a size above the limit of the receiver is an error.
      if (size < 0 || size > this.#maxTableBytes) return 'invalid';
      this.#table.resize(size);
    }
    while (this.#at < end) {
      const result = this.#field(bytes[this.#at] as number, target);
      if (result !== 'done') return result;
    }
    return 'done';
  }

  #field(byte: number, target: FieldTarget): BlockResult {
    if (byte >= 0x80) return this.#indexedField(this.#integer(0x7f), target);
    // RFC 7541 §6.2: 01 is a literal that the table receives; 0000 and 0001 are literals that it does not.
    if (byte >= 0x40) return this.#literal(this.#integer(0x3f), true, target);
    if (byte >= 0x20) return 'invalid';
    return this.#literal(this.#integer(0x0f), false, target);
  }

  #indexedField(index: number, target: FieldTarget): BlockResult {
    // RFC 7541 §6.1: index 0 is an error.
    if (index <= 0) return 'invalid';
    const nameStart = target.at;
    const nameEnd = this.#copyName(index, target.memory, nameStart);
    if (nameEnd < 0) return 'invalid';
    const table = this.#table;
    const { memory } = target;
    let to = nameEnd + 2;
    let meta: number;
    if (index <= STATIC_COUNT) {
      const end = STATIC_VALUE_END[index] as number;
      for (let at = STATIC_VALUE_START[index] as number; at < end; at += 1, to += 1) {
        memory[to] = STATIC_BYTES[at] as number;
      }
      meta = STATIC_IDS[index] as number;
    } else {
      const number = this.#numberOf(index);
      const { bytes } = table;
      const from = table.nameStart(number) + table.nameLength(number);
      const end = from + table.valueLength(number);
      for (let at = from; at < end; at += 1, to += 1) memory[to] = bytes[at] as number;
      meta = table.meta(number);
    }
    return finishField(target, nameEnd, to, meta);
  }

  #literal(index: number, isInserted: boolean, target: FieldTarget): BlockResult {
    if (index < 0) return 'invalid';
    const { memory, at: nameStart } = target;
    const nameEnd = index === 0 ? this.#string(memory, nameStart) : this.#copyName(index, memory, nameStart);
    if (nameEnd === INVALID) return 'invalid';
    const valueStart = nameEnd === SKIPPED ? nameStart : nameEnd + 2;
    const valueEnd = this.#string(memory, valueStart);
    if (valueEnd === INVALID) return 'invalid';
    if (nameEnd === SKIPPED || valueEnd === SKIPPED) {
      // RFC 7541 §4.4: an entry that is larger than the table empties the table.
      if (isInserted) this.#table.clear();
      target.skip();
      return 'done';
    }
    let meta = index === 0 ? metaOfName(memory, nameStart, nameEnd) : this.#metaOfName(index);
    if (!isFieldValue(memory, valueStart, valueEnd)) meta |= INVALID_VALUE;
    if (isInserted) {
      this.#table.insert(memory, nameStart, nameEnd - nameStart, valueStart, valueEnd - valueStart, meta);
    }
    return finishField(target, nameEnd, valueEnd, meta);
  }

  /** Returns the number of a dynamic entry. RFC 7541 §2.3.3: the newest entry follows the static table. */
  #numberOf(index: number): number {
    return this.#table.insertions - (index - STATIC_COUNT);
  }

  #metaOfName(index: number): number {
    if (index <= STATIC_COUNT) return STATIC_IDS[index] as number;
    // `#copyName` has checked the index, and nothing was inserted since.
    return this.#table.meta(this.#numberOf(index)) & (ID_MASK | INVALID_NAME);
  }

  /** Copies the name of an entry. Returns the position after the copy, or `INVALID` if there is no such entry. */
  #copyName(index: number, memory: Uint8Array, start: number): number {
    let to = start;
    if (index <= STATIC_COUNT) {
      const end = STATIC_VALUE_START[index] as number;
      for (let at = STATIC_NAME_START[index] as number; at < end; at += 1, to += 1) {
        memory[to] = STATIC_BYTES[at] as number;
      }
      return to;
    }
    const number = this.#numberOf(index);
    // RFC 7541 §2.3.3: an index after the end of both tables is an error.
    if (!this.#table.has(number)) return INVALID;
    const { bytes } = this.#table;
    const from = this.#table.nameStart(number);
    const end = from + this.#table.nameLength(number);
    for (let at = from; at < end; at += 1, to += 1) memory[to] = bytes[at] as number;
    return to;
  }

  /** Decodes a string (RFC 7541 §5.2) to `to`. Returns the position after the string, `INVALID` or `SKIPPED`. */
  #string(memory: Uint8Array, to: number): number {
    if (this.#at >= this.#end) return INVALID;
    const isHuffman = ((this.#bytes[this.#at] as number) & 0x80) !== 0;
    const length = this.#integer(0x7f);
    const start = this.#at;
    if (length < 0 || length > this.#end - start) return INVALID;
    this.#at = start + length;
    if (length > MAX_STRING_BYTES) return SKIPPED;
    if (isHuffman) return huffmanDecode(this.#bytes, start, this.#at, memory, to);
    for (let at = start; at < start + length; at += 1) memory[to + at - start] = this.#bytes[at] as number;
    return to + length;
  }

  /** Reads an integer (RFC 7541 §5.1) whose prefix has the bits of `mask`. Returns -1 if it is invalid or too large. */
  #integer(mask: number): number {
    const bytes = this.#bytes;
    let value = (bytes[this.#at] as number) & mask;
    this.#at += 1;
    if (value < mask) return value;
    for (let shift = 0; shift < MAX_INTEGER_SHIFT; shift += 7) {
      if (this.#at >= this.#end) return -1;
      const byte = bytes[this.#at] as number;
      this.#at += 1;
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return -1;
  }
}

function finishField(target: FieldTarget, nameEnd: number, valueEnd: number, meta: number): BlockResult {
  const { memory } = target;
  memory[nameEnd] = COLON;
  memory[nameEnd + 1] = SPACE;
  memory[valueEnd] = CR;
  memory[valueEnd + 1] = LF;
  const isValid = (meta & (INVALID_NAME | INVALID_VALUE)) === 0;
  return target.take(nameEnd, valueEnd, meta & ID_MASK, isValid) ? 'done' : 'too-large';
}

/** Returns the id of a name, and whether its bytes are allowed. */
function metaOfName(bytes: Uint8Array, start: number, end: number): number {
  const id = nameIdOf(bytes, start, end);
  if (id === PSEUDO.unknown) return id | INVALID_NAME;
  if (id >= MIN_PSEUDO_ID) return id;
  // RFC 9113 §8.2.1: a name is a token without upper-case letters.
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at] as number;
    if (TOKEN_LOWER[byte] !== byte || byte === 0) return id | INVALID_NAME;
  }
  return start === end ? id | INVALID_NAME : id;
}

/** RFC 9113 §8.2.1: a value contains no control and has no whitespace around it. */
function isFieldValue(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (IS_VALUE_BYTE[bytes[at] as number] === 0) return false;
  if (start === end) return true;
  const first = bytes[start];
  const last = bytes[end - 1];
  return first !== SPACE && first !== TAB && last !== SPACE && last !== TAB;
}
