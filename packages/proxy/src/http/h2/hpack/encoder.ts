import { TOKEN_LOWER } from '../../h1/byte-classes.ts';
import { DynamicTable, ENTRY_OVERHEAD_BYTES } from './dynamic-table.ts';
import { huffmanEncode, huffmanLengthOf } from './huffman.ts';
import {
  isSecret,
  nameIdOf,
  STATIC_BYTES,
  STATIC_COUNT,
  STATIC_NAME_START,
  STATIC_VALUE_END,
  STATIC_VALUE_START,
} from './static-table.ts';

/** The size of the dynamic table that the encoder uses, also if the peer would allow a larger one. */
const MAX_TABLE_BYTES = 4_096;
/** Names up to this length are Huffman-coded. */
const MAX_CODED_NAME_BYTES = 256;
/** A larger field would evict most of the table. */
const MAX_INSERTED_BYTES = 512;

/** The numbers of buckets of the hash tables. All are powers of two. */
const STATIC_BUCKETS = 256;
const DYNAMIC_BUCKETS = 128;
const SEEN_BUCKETS = 64;

// The first bits of each kind of field (RFC 7541 §6), and the bits of the integer that follows.
const INDEXED = 0x80;
const INSERTED = 0x40;
const NOT_INSERTED = 0x00;
const NEVER_INDEXED = 0x10;
const TABLE_SIZE = 0x20;

/** The lower-case form of each byte of a name. `:` of a pseudo-field stays. */
const LOWER: Uint8Array = Uint8Array.from(TOKEN_LOWER, (lower, byte) => lower || byte);

/** The first index of each name in the static table, by the hash of the name. A collision moves on to the next bucket. */
const STATIC_INDEX: Uint8Array = new Uint8Array(STATIC_BUCKETS);
for (let index = STATIC_COUNT; index > 0; index -= 1) {
  const start = STATIC_NAME_START[index] as number;
  const end = STATIC_VALUE_START[index] as number;
  let bucket = hashOf(STATIC_BYTES, start, end, 0) & (STATIC_BUCKETS - 1);
  while (STATIC_INDEX[bucket] !== 0 && !isStaticName(STATIC_INDEX[bucket] as number, STATIC_BYTES, start, end)) {
    bucket = (bucket + 1) & (STATIC_BUCKETS - 1);
  }
  STATIC_INDEX[bucket] = index;
}

/**
 * Encodes the header blocks of one direction of a connection (RFC 7541), which must be sent in the order in which they are
 * encoded. A field enters the dynamic table when the same field comes for the second time, so fields that differ in each
 * message cost no memory and evict nothing.
 */
export class HpackEncoder {
  readonly #table: DynamicTable = new DynamicTable(MAX_TABLE_BYTES);
  /** The block that is being encoded. */
  #target: Uint8Array = new Uint8Array(0);
  #at = 0;
  /** For each bucket: the number of the newest entry with this hash of name and value, or of the name, plus 1. */
  #byField: Int32Array | undefined;
  #byName: Int32Array | undefined;
  /** The hashes of fields that came recently. */
  #seen: Int32Array | undefined;
  /** The sizes that the next block announces, or -1: the smallest since the last block, and the last. */
  #smallestSize = -1;
  #lastSize = -1;

  /** The position after the bytes of the block. */
  get position(): number {
    return this.#at;
  }

  /** Takes the peer's SETTINGS_HEADER_TABLE_SIZE. The next block announces the size that the encoder uses. */
  limitTable(peerBytes: number): void {
    const size = Math.min(peerBytes, MAX_TABLE_BYTES);
    if (size === this.#table.capacity && this.#lastSize === -1) return;
    // RFC 7541 §4.2: if the size changes several times between two blocks, the smallest size must be announced too.
    this.#smallestSize = this.#smallestSize === -1 ? size : Math.min(size, this.#smallestSize);
    this.#lastSize = size;
    this.#table.resize(size);
  }

  /** Begins a block at `at` of `target`. The caller provides space: each field takes at most its length and 12 bytes. */
  begin(target: Uint8Array, at: number): void {
    this.#target = target;
    this.#at = at;
    if (this.#lastSize === -1) return;
    if (this.#smallestSize < this.#lastSize) this.#integer(TABLE_SIZE, 0x1f, this.#smallestSize);
    this.#integer(TABLE_SIZE, 0x1f, this.#lastSize);
    this.#smallestSize = -1;
    this.#lastSize = -1;
  }

  /**
   * Adds a field: its name from `nameStart` to `nameEnd`, which is sent in lower case, and its value from `valueStart`
   * to `valueEnd` of the same array. `id` is the id of the name (`FIELD` or `PSEUDO`). The arguments are not in an
   * object, because this is called for each field of all heads.
   */
  field(
    bytes: Uint8Array,
    nameStart: number,
    nameEnd: number,
    valueStart: number,
    valueEnd: number,
    id: number = nameIdOf(bytes, nameStart, nameEnd),
  ): void {
    const nameHash = hashOf(bytes, nameStart, nameEnd, 0);
    const staticIndex = staticIndexOf(nameHash, bytes, nameStart, nameEnd);
    if (isSecret(id)) {
      this.#literal(NEVER_INDEXED, 0x0f, staticIndex, bytes, nameStart, nameEnd);
      this.#string(bytes, valueStart, valueEnd);
      return;
    }
    if (staticIndex > 0) {
      const index = staticFieldIndexOf(staticIndex, bytes, valueStart, valueEnd);
      if (index > 0) {
        this.#integer(INDEXED, 0x7f, index);
        return;
      }
    }
    const hash = hashOf(bytes, valueStart, valueEnd, nameHash);
    const table = this.#table;
    const known = this.#numberIn(this.#byField, hash);
    if (
      known >= 0 &&
      this.#hasName(known, bytes, nameStart, nameEnd) &&
      this.#hasValue(known, bytes, valueStart, valueEnd)
    ) {
      this.#integer(INDEXED, 0x7f, STATIC_COUNT + table.insertions - known);
      return;
    }
    let nameIndex = staticIndex;
    if (nameIndex === 0) {
      const named = this.#numberIn(this.#byName, nameHash);
      if (named >= 0 && this.#hasName(named, bytes, nameStart, nameEnd)) {
        nameIndex = STATIC_COUNT + table.insertions - named;
      }
    }
    const isInserted = this.#isRepeated(hash, nameEnd - nameStart + valueEnd - valueStart);
    if (isInserted) this.#literal(INSERTED, 0x3f, nameIndex, bytes, nameStart, nameEnd);
    else this.#literal(NOT_INSERTED, 0x0f, nameIndex, bytes, nameStart, nameEnd);
    this.#string(bytes, valueStart, valueEnd);
    if (isInserted) this.#insert(hash, nameHash, bytes, nameStart, nameEnd, valueStart, valueEnd);
  }

  /** Adds the pseudo-field `:status`. `status` has three digits. */
  status(status: number): void {
    const index = STATUS_INDEX[status] ?? 0;
    if (index > 0) {
      this.#integer(INDEXED, 0x7f, index);
      return;
    }
    this.#integer(NOT_INSERTED, 0x0f, FIRST_STATUS_INDEX);
    this.#byte(3);
    this.#byte(0x30 + Math.floor(status / 100));
    this.#byte(0x30 + (Math.floor(status / 10) % 10));
    this.#byte(0x30 + (status % 10));
  }

  /** Reports whether a field with this hash came before, and remembers the hash. */
  #isRepeated(hash: number, length: number): boolean {
    if (length > MAX_INSERTED_BYTES || length + ENTRY_OVERHEAD_BYTES > this.#table.capacity) return false;
    this.#seen ??= new Int32Array(SEEN_BUCKETS);
    const bucket = hash & (SEEN_BUCKETS - 1);
    if (this.#seen[bucket] === hash) return true;
    this.#seen[bucket] = hash;
    return false;
  }

  #insert(
    hash: number,
    nameHash: number,
    bytes: Uint8Array,
    nameStart: number,
    nameEnd: number,
    valueStart: number,
    valueEnd: number,
  ): void {
    this.#byField ??= new Int32Array(DYNAMIC_BUCKETS);
    this.#byName ??= new Int32Array(DYNAMIC_BUCKETS);
    const table = this.#table;
    table.insert(bytes, nameStart, nameEnd - nameStart, valueStart, valueEnd - valueStart, 0);
    this.#byField[hash & (DYNAMIC_BUCKETS - 1)] = table.insertions;
    this.#byName[nameHash & (DYNAMIC_BUCKETS - 1)] = table.insertions;
  }

  /** Returns the number of an entry with this hash, or -1. The caller compares the bytes. */
  #numberIn(buckets: Int32Array | undefined, hash: number): number {
    if (buckets === undefined) return -1;
    const number = (buckets[hash & (DYNAMIC_BUCKETS - 1)] as number) - 1;
    return this.#table.has(number) ? number : -1;
  }

  #hasName(number: number, bytes: Uint8Array, start: number, end: number): boolean {
    const table = this.#table;
    if (table.nameLength(number) !== end - start) return false;
    const offset = table.nameStart(number) - start;
    for (let at = start; at < end; at += 1) {
      if (LOWER[table.bytes[offset + at] as number] !== LOWER[bytes[at] as number]) return false;
    }
    return true;
  }

  #hasValue(number: number, bytes: Uint8Array, start: number, end: number): boolean {
    const table = this.#table;
    if (table.valueLength(number) !== end - start) return false;
    const offset = table.nameStart(number) + table.nameLength(number) - start;
    for (let at = start; at < end; at += 1) if (table.bytes[offset + at] !== bytes[at]) return false;
    return true;
  }

  /** Writes the first part of a literal: the index of its name, or the name in lower case if `nameIndex` is 0. */
  #literal(kind: number, mask: number, nameIndex: number, bytes: Uint8Array, start: number, end: number): void {
    this.#integer(kind, mask, nameIndex);
    if (nameIndex > 0) return;
    const length = end - start;
    if (length <= MAX_CODED_NAME_BYTES) {
      for (let at = 0; at < length; at += 1) lowerName[at] = LOWER[bytes[start + at] as number] as number;
      this.#string(lowerName, 0, length);
      return;
    }
    this.#integer(0, 0x7f, length);
    for (let at = start; at < end; at += 1) this.#byte(LOWER[bytes[at] as number] as number);
  }

  /** Writes a string (RFC 7541 §5.2) in the shorter form. */
  #string(bytes: Uint8Array, start: number, end: number): void {
    const length = end - start;
    const codedLength = huffmanLengthOf(bytes, start, end);
    if (codedLength < length) {
      this.#integer(0x80, 0x7f, codedLength);
      this.#at = huffmanEncode(this.#target, this.#at, bytes, start, end);
      return;
    }
    this.#integer(0, 0x7f, length);
    let to = this.#at;
    for (let at = start; at < end; at += 1, to += 1) this.#target[to] = bytes[at] as number;
    this.#at = to;
  }

  /** Writes an integer (RFC 7541 §5.1) in the bits of `mask`, after the bits of `kind`. */
  #integer(kind: number, mask: number, value: number): void {
    if (value < mask) {
      this.#byte(kind | value);
      return;
    }
    this.#byte(kind | mask);
    let rest = value - mask;
    for (; rest >= 0x80; rest >>>= 7) this.#byte((rest & 0x7f) | 0x80);
    this.#byte(rest);
  }

  #byte(value: number): void {
    this.#target[this.#at] = value;
    this.#at += 1;
  }
}

/** The name of the literal that is being encoded. */
const lowerName: Uint8Array = new Uint8Array(MAX_CODED_NAME_BYTES);

/** The indexes of the statuses in the static table. */
const FIRST_STATUS_INDEX = 8;
const STATUS_INDEX: Uint8Array = new Uint8Array(1_000);
for (const [offset, status] of [200, 204, 206, 304, 400, 404, 500].entries()) {
  STATUS_INDEX[status] = FIRST_STATUS_INDEX + offset;
}

/** Returns the first index of a name in the static table, or 0. */
function staticIndexOf(hash: number, bytes: Uint8Array, start: number, end: number): number {
  let bucket = hash & (STATIC_BUCKETS - 1);
  for (;;) {
    const index = STATIC_INDEX[bucket] as number;
    if (index === 0 || isStaticName(index, bytes, start, end)) return index;
    bucket = (bucket + 1) & (STATIC_BUCKETS - 1);
  }
}

/** Returns the index of a static entry that has the name of `first` and this value, or 0. */
function staticFieldIndexOf(first: number, bytes: Uint8Array, start: number, end: number): number {
  const name = STATIC_NAME_START[first] as number;
  const nameLength = (STATIC_VALUE_START[first] as number) - name;
  for (let index = first; index <= STATIC_COUNT; index += 1) {
    const valueStart = STATIC_VALUE_START[index] as number;
    if (valueStart - (STATIC_NAME_START[index] as number) !== nameLength) return 0;
    if (index > first && STATIC_BYTES[STATIC_NAME_START[index] as number] !== STATIC_BYTES[name]) return 0;
    const length = (STATIC_VALUE_END[index] as number) - valueStart;
    // Entries without a value stand for the name only.
    if (length === 0) return 0;
    if (length !== end - start) continue;
    let at = 0;
    while (at < length && STATIC_BYTES[valueStart + at] === bytes[start + at]) at += 1;
    if (at === length) return index;
  }
  return 0;
}

function isStaticName(index: number, bytes: Uint8Array, start: number, end: number): boolean {
  const nameStart = STATIC_NAME_START[index] as number;
  if ((STATIC_VALUE_START[index] as number) - nameStart !== end - start) return false;
  for (let at = start; at < end; at += 1) {
    if (STATIC_BYTES[nameStart + at - start] !== LOWER[bytes[at] as number]) return false;
  }
  return true;
}

/** Continues the hash `seed` with bytes from `start` to `end`, whatever the case of their letters. */
function hashOf(bytes: Uint8Array, start: number, end: number, seed: number): number {
  let hash = seed;
  for (let at = start; at < end; at += 1) hash = (Math.imul(hash, 31) + ((bytes[at] as number) | 0x20)) | 0;
  // The last bytes reach only the low bits; the high bits spread the buckets.
  return hash ^ (hash >>> 15);
}
