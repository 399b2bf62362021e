import { createClientCountsMemory } from './client-counts.ts';

// The layout of limits in shared memory: a row for each tenant and each Service of a proxy. The main thread writes what may
// be had, the workers what is had. Whoever leases shares of a fleet-wide limit writes another number there, and no more.

/** Of bytes: what the client sends, and what it gets. */
export type Direction = 'in' | 'out';
const DIRECTIONS: readonly Direction[] = ['in', 'out'];
/** Offsets of doubles in a row: what may be had on this proxy; Infinity: no limit. */
export const MAX_OPEN_FIELD = 0;
export const MAX_NEW_PER_SECOND_FIELD = 1;
export const IN_BITS_PER_SECOND_FIELD = 2;
export const OUT_BITS_PER_SECOND_FIELD = 3;
const LIMIT_FIELDS = 4;
/** Offsets of 64-bit integers in a row: the moments of `model/limit/pace`, one clock for all threads. */
export const NEW_PAID_UNTIL_FIELD = 4;
export const IN_PAID_UNTIL_FIELD = 5;
export const OUT_PAID_UNTIL_FIELD = 6;
/** Then, for each worker: since when its first reader waits for a turn; 0: none does. In, and out. */
const FIRST_WAITING_FIELD = 7;
const WORD_BYTES = 8;
const CACHE_LINE_BYTES = 64;
const INITIAL_ROWS = 256;
/** Address space is set aside for so many; memory is taken as rows are needed. */
const MAX_ROWS = 1_048_576;
/** What belongs to nobody: never limited. */
export const UNLIMITED_ROW = 0;
/** What all tenants have together. */
export const PROXY_ROW = 1;
export const FIRST_FREE_ROW = 2;

export interface LimiterStateMemory {
  readonly buffer: SharedArrayBuffer;
  /** How many workers there may be at a time: each counts in a column of its own. */
  readonly workerSlots: number;
}

export function createLimiterStateMemory(workerSlots: number): LimiterStateMemory {
  const stride = rowBytesFor(workerSlots);
  const buffer = new SharedArrayBuffer(INITIAL_ROWS * stride, { maxByteLength: MAX_ROWS * stride });
  const sheet = new LimiterState({ buffer, workerSlots });
  for (let row = 0; row < FIRST_FREE_ROW; row += 1) sheet.clearRow(row);
  return { buffer, workerSlots };
}

/** A row is whole cache lines, so that tenants do not slow each other down. */
function rowBytesFor(columns: number): number {
  const bytes = (FIRST_WAITING_FIELD + 2 * columns) * WORD_BYTES + columns * Int32Array.BYTES_PER_ELEMENT;
  return Math.ceil(bytes / CACHE_LINE_BYTES) * CACHE_LINE_BYTES;
}

export class LimiterState {
  readonly workerSlots: number;
  readonly #buffer: SharedArrayBuffer;
  readonly #rowBytes: number;
  #rows = 0;
  #doubles = new Float64Array(new SharedArrayBuffer(0));
  #longs = new BigInt64Array(new SharedArrayBuffer(0));
  #ints = new Int32Array(new SharedArrayBuffer(0));

  constructor({ buffer, workerSlots }: LimiterStateMemory) {
    this.#buffer = buffer;
    this.workerSlots = workerSlots;
    this.#rowBytes = rowBytesFor(workerSlots);
    this.#mapViews();
  }

  /** To be called before a row is used: the memory may have grown since. The main thread makes it grow. */
  ensureRow(row: number): void {
    if (row < this.#rows) return;
    this.#mapViews();
    while (row >= this.#rows) {
      const bytes = Math.min(this.#buffer.byteLength * 2, this.#buffer.maxByteLength);
      if (bytes === this.#buffer.byteLength) throw new Error(`no room for limits: ${this.#rows} rows are in use`);
      this.#buffer.grow(bytes);
      this.#mapViews();
    }
  }

  limit(row: number, limit: number): number {
    return this.#doubles[this.#rowOffset(row) + limit] as number;
  }

  setLimit(row: number, limit: number, value: number): void {
    this.#doubles[this.#rowOffset(row) + limit] = value;
  }

  paidUntil(row: number, bucket: number): bigint {
    return Atomics.load(this.#longs, this.#rowOffset(row) + bucket);
  }

  /** Puts `next` in place of what was read; false: somebody else was faster. */
  setPaidUntil(row: number, bucket: number, { read, next }: { readonly read: bigint; readonly next: bigint }): boolean {
    return Atomics.compareExchange(this.#longs, this.#rowOffset(row) + bucket, read, next) === read;
  }

  setFirstWaiting(row: number, { direction, workerSlot }: WaiterKey, since: bigint): void {
    Atomics.store(this.#longs, this.#waitingOffset(row, direction) + workerSlot, since);
  }

  /** Whether a reader of another worker has waited for longer. */
  hasEarlierWaiter(row: number, { direction, workerSlot }: WaiterKey, since: bigint): boolean {
    const first = this.#waitingOffset(row, direction);
    for (let other = 0; other < this.workerSlots; other += 1) {
      if (other === workerSlot) continue;
      const theirs = Atomics.load(this.#longs, first + other);
      if (theirs !== 0n && theirs < since) return true;
    }
    return false;
  }

  addOpen(row: number, column: number, change: 1 | -1): void {
    Atomics.add(this.#ints, this.#openOffset(row) + column, change);
  }

  /** Of all workers. */
  openCount(row: number): number {
    const first = this.#openOffset(row);
    let open = 0;
    for (let column = 0; column < this.workerSlots; column += 1) open += Atomics.load(this.#ints, first + column);
    return open;
  }

  /** A worker is gone, and with it all that it had. */
  clearWorker(workerSlot: number): void {
    this.#mapViews();
    for (let row = 0; row < this.#rows; row += 1) {
      Atomics.store(this.#ints, this.#openOffset(row) + workerSlot, 0);
      for (const direction of DIRECTIONS) this.setFirstWaiting(row, { direction, workerSlot }, 0n);
    }
  }

  /** For an owner that begins: no limit yet, and nothing taken. */
  clearRow(row: number): void {
    for (let limit = 0; limit < LIMIT_FIELDS; limit += 1) this.setLimit(row, limit, Number.POSITIVE_INFINITY);
    for (let word = LIMIT_FIELDS; word < FIRST_WAITING_FIELD; word += 1)
      Atomics.store(this.#longs, this.#rowOffset(row) + word, 0n);
  }

  #rowOffset(row: number): number {
    return (row * this.#rowBytes) / WORD_BYTES;
  }

  #waitingOffset(row: number, direction: Direction): number {
    return this.#rowOffset(row) + FIRST_WAITING_FIELD + (direction === 'out' ? this.workerSlots : 0);
  }

  #openOffset(row: number): number {
    return (
      ((FIRST_WAITING_FIELD + 2 * this.workerSlots) * WORD_BYTES + row * this.#rowBytes) / Int32Array.BYTES_PER_ELEMENT
    );
  }

  #mapViews(): void {
    const bytes = this.#buffer.byteLength;
    this.#rows = bytes / this.#rowBytes;
    this.#doubles = new Float64Array(this.#buffer, 0, bytes / WORD_BYTES);
    this.#longs = new BigInt64Array(this.#buffer, 0, bytes / WORD_BYTES);
    this.#ints = new Int32Array(this.#buffer, 0, bytes / Int32Array.BYTES_PER_ELEMENT);
  }
}

export interface WaiterKey {
  readonly direction: Direction;
  readonly workerSlot: number;
}

/** All that the workers of a proxy share about limits. */
export interface LimiterMemory {
  readonly state: LimiterStateMemory;
  readonly clientCounts: SharedArrayBuffer;
}

/** A worker's part in it: nobody else counts in its column. */
export interface WorkerLimiterMemory {
  readonly memory: LimiterMemory;
  readonly workerSlot: number;
}

export function createLimiterMemory(workers: number): LimiterMemory {
  return { state: createLimiterStateMemory(workers), clientCounts: createClientCountsMemory(workers) };
}
