// The layout of limits in shared memory: a row for each tenant and each Service of a proxy. The main thread writes what may
// be had, the workers what is had. Whoever leases shares of a fleet-wide limit writes another number there, and no more.

/** Of bytes: what the client sends, and what it gets. */
export type Direction = 'in' | 'out';

const DIRECTIONS: readonly Direction[] = ['in', 'out'];

/** Offsets of doubles in a row: what may be had on this proxy; Infinity: no limit. */
export const MOST_OPEN = 0;
export const MOST_NEW_PER_SECOND = 1;
export const IN_BITS_PER_SECOND = 2;
export const OUT_BITS_PER_SECOND = 3;
const LIMITS = 4;

/** Offsets of 64-bit integers in a row: the moments of `model/limit/pace`, one clock for all threads. */
export const NEW_PAID_UNTIL = 4;
export const IN_PAID_UNTIL = 5;
export const OUT_PAID_UNTIL = 6;
/** Then, for each worker: since when its first reader waits for a turn; 0: none does. In, and out. */
const FIRST_WAITING = 7;

const WORD = 8;
const CACHE_LINE = 64;
const FIRST_ROWS = 256;
/** Address space is set aside for so many; memory is taken as rows are needed. */
const MOST_ROWS = 1_048_576;

/** What belongs to nobody: never limited. */
export const UNLIMITED_ROW = 0;
/** What all tenants have together. */
export const EVERYBODY_ROW = 1;
export const FIRST_FREE_ROW = 2;

export interface SheetMemory {
  readonly buffer: SharedArrayBuffer;
  /** How many workers there may be at a time: each counts in a column of its own. */
  readonly columns: number;
}

export function createSheetMemory(columns: number): SheetMemory {
  const stride = strideFor(columns);
  const buffer = new SharedArrayBuffer(FIRST_ROWS * stride, { maxByteLength: MOST_ROWS * stride });
  const sheet = new LimitSheet({ buffer, columns });
  for (let row = 0; row < FIRST_FREE_ROW; row += 1) sheet.clearRow(row);
  return { buffer, columns };
}

/** A row is whole cache lines, so that tenants do not slow each other down. */
function strideFor(columns: number): number {
  const bytes = (FIRST_WAITING + 2 * columns) * WORD + columns * Int32Array.BYTES_PER_ELEMENT;
  return Math.ceil(bytes / CACHE_LINE) * CACHE_LINE;
}

export class LimitSheet {
  readonly columns: number;
  readonly #buffer: SharedArrayBuffer;
  readonly #stride: number;
  #rows = 0;
  #doubles = new Float64Array(new SharedArrayBuffer(0));
  #longs = new BigInt64Array(new SharedArrayBuffer(0));
  #ints = new Int32Array(new SharedArrayBuffer(0));

  constructor({ buffer, columns }: SheetMemory) {
    this.#buffer = buffer;
    this.columns = columns;
    this.#stride = strideFor(columns);
    this.#see();
  }

  /** To be called before a row is used: the memory may have grown since. The main thread makes it grow. */
  reach(row: number): void {
    if (row < this.#rows) return;
    this.#see();
    while (row >= this.#rows) {
      const bytes = Math.min(this.#buffer.byteLength * 2, this.#buffer.maxByteLength);
      if (bytes === this.#buffer.byteLength) throw new Error(`no room for limits: ${this.#rows} rows are in use`);
      this.#buffer.grow(bytes);
      this.#see();
    }
  }

  limit(row: number, limit: number): number {
    return this.#doubles[this.#word(row) + limit] as number;
  }

  setLimit(row: number, limit: number, value: number): void {
    this.#doubles[this.#word(row) + limit] = value;
  }

  paidUntil(row: number, bucket: number): bigint {
    return Atomics.load(this.#longs, this.#word(row) + bucket);
  }

  /** Puts `next` in place of what was read; false: somebody else was faster. */
  setPaidUntil(row: number, bucket: number, { read, next }: { readonly read: bigint; readonly next: bigint }): boolean {
    return Atomics.compareExchange(this.#longs, this.#word(row) + bucket, read, next) === read;
  }

  setFirstWaiting(row: number, { direction, column }: WaitingAt, since: bigint): void {
    Atomics.store(this.#longs, this.#waiting(row, direction) + column, since);
  }

  /** Whether a reader of another worker has waited for longer. */
  isSomebodyBefore(row: number, { direction, column }: WaitingAt, since: bigint): boolean {
    const first = this.#waiting(row, direction);
    for (let other = 0; other < this.columns; other += 1) {
      if (other === column) continue;
      const theirs = Atomics.load(this.#longs, first + other);
      if (theirs !== 0n && theirs < since) return true;
    }
    return false;
  }

  addOpen(row: number, column: number, change: 1 | -1): void {
    Atomics.add(this.#ints, this.#open(row) + column, change);
  }

  /** Of all workers. */
  open(row: number): number {
    const first = this.#open(row);
    let open = 0;
    for (let column = 0; column < this.columns; column += 1) open += Atomics.load(this.#ints, first + column);
    return open;
  }

  /** A worker is gone, and with it all that it had. */
  clearColumn(column: number): void {
    this.#see();
    for (let row = 0; row < this.#rows; row += 1) {
      Atomics.store(this.#ints, this.#open(row) + column, 0);
      for (const direction of DIRECTIONS) this.setFirstWaiting(row, { direction, column }, 0n);
    }
  }

  /** For an owner that begins: no limit yet, and nothing taken. */
  clearRow(row: number): void {
    for (let limit = 0; limit < LIMITS; limit += 1) this.setLimit(row, limit, Number.POSITIVE_INFINITY);
    for (let word = LIMITS; word < FIRST_WAITING; word += 1) Atomics.store(this.#longs, this.#word(row) + word, 0n);
  }

  #word(row: number): number {
    return (row * this.#stride) / WORD;
  }

  #waiting(row: number, direction: Direction): number {
    return this.#word(row) + FIRST_WAITING + (direction === 'out' ? this.columns : 0);
  }

  #open(row: number): number {
    return ((FIRST_WAITING + 2 * this.columns) * WORD + row * this.#stride) / Int32Array.BYTES_PER_ELEMENT;
  }

  #see(): void {
    const bytes = this.#buffer.byteLength;
    this.#rows = bytes / this.#stride;
    this.#doubles = new Float64Array(this.#buffer, 0, bytes / WORD);
    this.#longs = new BigInt64Array(this.#buffer, 0, bytes / WORD);
    this.#ints = new Int32Array(this.#buffer, 0, bytes / Int32Array.BYTES_PER_ELEMENT);
  }
}

export interface WaitingAt {
  readonly direction: Direction;
  readonly column: number;
}
