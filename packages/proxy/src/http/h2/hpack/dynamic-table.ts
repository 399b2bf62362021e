/** RFC 7541 §4.1: the size of an entry is the length of its name and value, and 32. */
export const ENTRY_OVERHEAD_BYTES = 32;

const FIRST_BYTES = 512;
const FIRST_SLOTS = 16;
/** The numbers per entry: the position of the name, the lengths of name and value, and the caller's `meta`. */
const SLOT_SIZE = 4;

/**
 * The dynamic table of one direction of a connection (RFC 7541 §2.3.2). The bytes of all entries lie in one array, each
 * entry in one piece. The arrays grow with use, up to about twice the capacity, so an idle connection has small ones.
 */
export class DynamicTable {
  /** The bytes of all entries. Replaced when it grows. */
  bytes: Uint8Array = new Uint8Array(0);
  /** The number of entries. */
  count = 0;
  /** How many entries were ever inserted. The newest entry has the number `insertions - 1`. */
  insertions = 0;
  #size = 0;
  #capacity: number;
  #slots: Int32Array = new Int32Array(0);
  /** Where the oldest entry starts, and where the newest entry ends. */
  #start = 0;
  #end = 0;

  /** `capacity` is the maximum size in bytes as RFC 7541 §4.1 counts them. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#size;
  }

  get capacity(): number {
    return this.#capacity;
  }

  /** Changes the capacity and evicts entries that no longer fit (RFC 7541 §4.3). */
  resize(capacity: number): void {
    this.#capacity = capacity;
    this.#evict(capacity);
  }

  clear(): void {
    this.#evict(0);
  }

  /** Inserts a copy of a name and of a value that begins at `valueStart` of the same array. */
  insert(
    source: Uint8Array,
    nameStart: number,
    nameLength: number,
    valueStart: number,
    valueLength: number,
    meta: number,
  ): void {
    const length = nameLength + valueLength;
    const size = length + ENTRY_OVERHEAD_BYTES;
    // RFC 7541 §4.4: an entry that is larger than the table empties the table.
    if (size > this.#capacity) {
      this.clear();
      return;
    }
    this.#evict(this.#capacity - size);
    this.#reserve(length);
    const { bytes } = this;
    let to = this.#end;
    const slot = this.#slotOfNumber(this.insertions);
    const slots = this.#slots;
    slots[slot] = to;
    slots[slot + 1] = nameLength;
    slots[slot + 2] = valueLength;
    slots[slot + 3] = meta;
    for (let at = nameStart, end = nameStart + nameLength; at < end; at += 1, to += 1) bytes[to] = source[at] as number;
    for (let at = valueStart, end = valueStart + valueLength; at < end; at += 1, to += 1) {
      bytes[to] = source[at] as number;
    }
    this.#end = to;
    this.#size += size;
    this.count += 1;
    this.insertions += 1;
  }

  /** The name of the entry with this number starts at the returned position of `bytes`; its value follows the name. */
  nameStart(number: number): number {
    return this.#slots[this.#slotOfNumber(number)] as number;
  }

  nameLength(number: number): number {
    return this.#slots[this.#slotOfNumber(number) + 1] as number;
  }

  valueLength(number: number): number {
    return this.#slots[this.#slotOfNumber(number) + 2] as number;
  }

  meta(number: number): number {
    return this.#slots[this.#slotOfNumber(number) + 3] as number;
  }

  /** Whether the entry with this number has not been evicted. */
  has(number: number): boolean {
    return number >= this.insertions - this.count && number < this.insertions;
  }

  #evict(size: number): void {
    while (this.#size > size) {
      const slot = this.#slotOfNumber(this.insertions - this.count);
      const length = (this.#slots[slot + 1] as number) + (this.#slots[slot + 2] as number);
      this.#start = (this.#slots[slot] as number) + length;
      this.#size -= length + ENTRY_OVERHEAD_BYTES;
      this.count -= 1;
    }
    if (this.count > 0) return;
    this.#start = 0;
    this.#end = 0;
  }

  #slotOfNumber(number: number): number {
    // The number of slots is a power of two.
    return (number * SLOT_SIZE) & (this.#slots.length - 1);
  }

  /** Makes space for one entry with `length` bytes. */
  #reserve(length: number): void {
    if (this.count * SLOT_SIZE === this.#slots.length) this.#growSlots();
    if (this.#end + length <= this.bytes.length) return;
    const used = this.#end - this.#start;
    let larger = this.bytes.length || FIRST_BYTES;
    // Each move frees at least half of the array, so a byte is moved about once.
    while (larger < 2 * (used + length)) larger *= 2;
    const moved = this.#start;
    if (larger === this.bytes.length) this.bytes.copyWithin(0, moved, this.#end);
    else {
      const bytes = new Uint8Array(larger);
      bytes.set(this.bytes.subarray(moved, this.#end));
      this.bytes = bytes;
    }
    for (let number = this.insertions - this.count; number < this.insertions; number += 1) {
      const slot = this.#slotOfNumber(number);
      this.#slots[slot] = (this.#slots[slot] as number) - moved;
    }
    this.#start = 0;
    this.#end = used;
  }

  #growSlots(): void {
    const old = this.#slots;
    const oldest = this.insertions - this.count;
    const slots = new Int32Array(old.length * 2 || FIRST_SLOTS * SLOT_SIZE);
    for (let number = oldest; number < this.insertions; number += 1) {
      const from = (number * SLOT_SIZE) & (old.length - 1);
      slots.set(old.subarray(from, from + SLOT_SIZE), (number * SLOT_SIZE) & (slots.length - 1));
    }
    this.#slots = slots;
  }
}
