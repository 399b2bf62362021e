import { createClientCountsMemory } from './client-counts.ts';
import { createDescriptorCountsMemory } from './descriptor-count.ts';
import { SECOND_WINDOW_CELLS } from './second-window.ts';

// The layout of limits in shared memory: one row for each tenant and each Service of a proxy. The main thread writes the
// limits of a row. The workers write what they have admitted and what they have open.

/** `in` is what the client sends, `out` is what the client receives. */
export type Direction = 'in' | 'out';
const DIRECTIONS: readonly Direction[] = ['in', 'out'];
/** Each worker has a cell for its open connections, and for each direction a cell for its waiting readers. */
const CELLS_PER_WORKER = 3;
/** Fields of a row that hold a limit as a double. Infinity means no limit. */
export const MAX_OPEN_FIELD = 0;
export const MAX_NEW_PER_SECOND_FIELD = 1;
export const IN_BITS_PER_SECOND_FIELD = 2;
export const OUT_BITS_PER_SECOND_FIELD = 3;
export const MAX_REQUESTS_PER_SECOND_FIELD = 4;
/** The mean rates, which `MAX_…_PER_SECOND_FIELD` may exceed in a single second. */
export const MEAN_NEW_PER_SECOND_FIELD = 5;
export const MEAN_REQUESTS_PER_SECOND_FIELD = 6;
const LIMIT_FIELDS = 7;
/**
 * Fields of a row that hold the token bucket of a bandwidth or of a mean rate. The value is the time until which the
 * rate is used up, in nanoseconds of a clock that all threads share.
 */
export const IN_PAID_UNTIL_FIELD = 7;
export const OUT_PAID_UNTIL_FIELD = 8;
/** The first of the fields of the mean rates, in the order of `CountRate`. */
export const FIRST_RATE_PAID_UNTIL_FIELD = 9;
/**
 * The first of the fields that hold waiting times, one for each direction and worker. The value is the time at which
 * the worker's first reader began to wait, in nanoseconds, or 0 if no reader waits.
 */
const FIRST_WAITING_FIELD = 12;
/** The rates of a row, each limited by a `SecondWindow` and a token bucket. */
export const NEW_CONNECTIONS = 0;
export const HELLOS = 1;
export const REQUESTS = 2;
export type CountRate = typeof NEW_CONNECTIONS | typeof HELLOS | typeof REQUESTS;
const COUNT_RATES = 3;
/**
 * The counters that each worker has in a row, as doubles that only increase. The first `COUNT_RATES` counters count how
 * many units were offered to each `CountRate`, whether or not the units were admitted. Units and bytes are counted only
 * while their rate is limited.
 */
export const IN_BYTES_COUNTER: number = COUNT_RATES;
export const OUT_BYTES_COUNTER: number = COUNT_RATES + 1;
export const REFUSED_OPEN_COUNTER: number = COUNT_RATES + 2;
const COUNTERS = COUNT_RATES + 3;
const WORD_BYTES = 8;
const CELL_BYTES = Int32Array.BYTES_PER_ELEMENT;
const CACHE_LINE_BYTES = 64;
/** The cells of `LimiterStateMemory.versions`. */
const BANDWIDTH_VERSION = 0;
const WAITING_VERSION = 1;
const VERSION_CELLS = 2;
const INITIAL_ROWS = 256;
/**
 * The maximum number of rows. Address space is reserved for all rows, but memory is allocated only as rows are used.
 */
const MAX_ROWS = 1_048_576;
/** The row of connections that belong to no Service or tenant. The row has no limits. */
export const UNLIMITED_ROW = 0;
/** The row that counts the connections of all tenants. */
export const PROXY_ROW = 1;
export const FIRST_FREE_ROW = 2;

export interface LimiterStateMemory {
  readonly buffer: SharedArrayBuffer;
  /** Two cells: the version of the bandwidth limits, and the version of the waiting readers. */
  readonly versions: Uint32Array;
  /** The largest number of workers that run at the same time. Each worker writes only in the cells of its own slot. */
  readonly workerSlots: number;
}

export function createLimiterStateMemory(workerSlots: number): LimiterStateMemory {
  const rowBytes = rowBytesFor(workerSlots);
  const buffer = new SharedArrayBuffer(INITIAL_ROWS * rowBytes, { maxByteLength: MAX_ROWS * rowBytes });
  // All workers read these cells for each chunk, so no other data may share their cache line. The first line stays empty, because
  // nothing promises that the buffer begins at a cache line.
  const lines = new SharedArrayBuffer(2 * CACHE_LINE_BYTES);
  const memory = { buffer, versions: new Uint32Array(lines, CACHE_LINE_BYTES, VERSION_CELLS), workerSlots };
  const state = new LimiterState(memory);
  for (let row = 0; row < FIRST_FREE_ROW; row += 1) state.clearRow(row);
  return memory;
}

/**
 * Returns the size of a row in bytes. A row fills whole cache lines, because otherwise writes for one tenant would slow
 * down another tenant (false sharing).
 */
function rowBytesFor(workerSlots: number): number {
  const cells = CELLS_PER_WORKER * workerSlots + COUNT_RATES * SECOND_WINDOW_CELLS;
  const bytes = wordsFor(workerSlots) * WORD_BYTES + cells * CELL_BYTES;
  return Math.ceil(bytes / CACHE_LINE_BYTES) * CACHE_LINE_BYTES;
}

/** Returns the number of 64-bit fields of a row. The 32-bit cells follow these fields. */
function wordsFor(workerSlots: number): number {
  return FIRST_WAITING_FIELD + (DIRECTIONS.length + COUNTERS) * workerSlots;
}

export class LimiterState {
  readonly workerSlots: number;
  readonly #buffer: SharedArrayBuffer;
  readonly #versions: Uint32Array;
  // Sizes in elements of `#doubles` and `#longs`, and of `#ints`. A division for each access would cost more than the access.
  readonly #rowWords: number;
  readonly #rowCells: number;
  readonly #firstCell: number;
  #rows = 0;
  #doubles = new Float64Array(new SharedArrayBuffer(0));
  #longs = new BigInt64Array(new SharedArrayBuffer(0));
  #ints = new Int32Array(new SharedArrayBuffer(0));

  constructor({ buffer, versions, workerSlots }: LimiterStateMemory) {
    this.#buffer = buffer;
    this.#versions = versions;
    this.workerSlots = workerSlots;
    this.#rowWords = rowBytesFor(workerSlots) / WORD_BYTES;
    this.#rowCells = rowBytesFor(workerSlots) / CELL_BYTES;
    this.#firstCell = (wordsFor(workerSlots) * WORD_BYTES) / CELL_BYTES;
    this.#mapViews();
  }

  /**
   * Makes a row accessible, and grows the memory if necessary. Must be called before a row is used, because another
   * thread may have grown the memory. Throws if all rows are in use.
   */
  ensureRow(row: number): void {
    if (row < this.#rows) return;
    this.#mapViews();
    while (row >= this.#rows) {
      const bytes = Math.min(this.#buffer.byteLength * 2, this.#buffer.maxByteLength);
      if (bytes === this.#buffer.byteLength)
        throw new Error(`too many tenants and Services with limits: all ${this.#rows} rows are in use`);
      this.#buffer.grow(bytes);
      this.#mapViews();
    }
  }

  limit(row: number, field: number): number {
    return this.#doubles[this.#rowOffset(row) + field] as number;
  }

  /** Returns where `limitAt` finds a limit. The index stays the same when the memory grows. */
  limitIndex(row: number, field: number): number {
    return this.#rowOffset(row) + field;
  }

  limitAt(index: number): number {
    return this.#doubles[index] as number;
  }

  setLimit(row: number, field: number, value: number): void {
    const index = this.#rowOffset(row) + field;
    if (this.#doubles[index] === value) return;
    this.#doubles[index] = value;
    if (field === IN_BITS_PER_SECOND_FIELD || field === OUT_BITS_PER_SECOND_FIELD)
      Atomics.add(this.#versions, BANDWIDTH_VERSION, 1);
  }

  /**
   * Returns the bandwidth version, which increases with each change of a bandwidth limit of any row. Read the version before
   * the limits. Values that are derived from bandwidth limits are valid as long as `isBandwidthVersion(version)` is true.
   */
  readBandwidthVersion(): number {
    return Atomics.load(this.#versions, BANDWIDTH_VERSION);
  }

  /**
   * Reports whether the bandwidth limits still have this version. Reads without `Atomics`, because V8 does not inline
   * `Atomics.load` and workers compare for each chunk. The worker may see a change a little later.
   */
  isBandwidthVersion(version: number): boolean {
    return this.#versions[BANDWIDTH_VERSION] === version;
  }

  paidUntil(row: number, field: number): bigint {
    return Atomics.load(this.#longs, this.#rowOffset(row) + field);
  }

  /**
   * Replaces the value `read` with `next` and returns true. Returns false if another thread has changed the value since
   * this thread read it.
   */
  setPaidUntil(row: number, field: number, { read, next }: { readonly read: bigint; readonly next: bigint }): boolean {
    return Atomics.compareExchange(this.#longs, this.#rowOffset(row) + field, read, next) === read;
  }

  setFirstWaiting(row: number, { direction, workerSlot }: WaitingReadersKey, since: bigint): void {
    Atomics.store(this.#longs, this.#waitingOffset(row, direction) + workerSlot, since);
  }

  /** Reports whether a reader of another worker waits and began to wait before `since`. */
  hasEarlierReader(row: number, { direction, workerSlot }: WaitingReadersKey, since: bigint): boolean {
    const offset = this.#waitingOffset(row, direction);
    for (let slot = 0; slot < this.workerSlots; slot += 1) {
      if (slot === workerSlot) continue;
      const waitingSince = Atomics.load(this.#longs, offset + slot);
      if (waitingSince !== 0n && waitingSince < since) return true;
    }
    return false;
  }

  /** Sets the number of readers of a worker that wait. */
  setWaitingReaders(row: number, { direction, workerSlot }: WaitingReadersKey, readers: number): void {
    const cell = this.#readersOffset(row, direction) + workerSlot;
    const former = Atomics.exchange(this.#ints, cell, readers);
    if ((former === 0) !== (readers === 0)) Atomics.add(this.#versions, WAITING_VERSION, 1);
  }

  /**
   * Returns the waiting version, which increases whenever the first reader of a worker begins to wait in any row, or the last
   * one stops. Read the version before `waitingReaders`. Whether readers wait does not change as long as
   * `isWaitingVersion(version)` is true.
   */
  readWaitingVersion(): number {
    return Atomics.load(this.#versions, WAITING_VERSION);
  }

  /** Reports whether the waiting version is still this one. Reads without `Atomics`, as `isBandwidthVersion` does. */
  isWaitingVersion(version: number): boolean {
    return this.#versions[WAITING_VERSION] === version;
  }

  /** Returns the number of readers of all workers that wait. */
  waitingReaders(row: number, direction: Direction): number {
    return this.#sumOfWorkers(this.#readersOffset(row, direction));
  }

  /**
   * Changes the number of open connections of a worker. Needs no `Atomics`, because only this worker writes the cell. Other
   * workers may see the change a little later.
   */
  changeOpen(row: number, workerSlot: number, change: 1 | -1): void {
    const cell = this.#cellsOffset(row) + workerSlot;
    this.#ints[cell] = (this.#ints[cell] as number) + change;
  }

  /**
   * Publishes the worker's number of open connections. If two workers publish and then call `openCount`, at least one of them
   * sees the other's number. Adding 0 is a memory barrier.
   */
  publishOpen(row: number, workerSlot: number): void {
    Atomics.add(this.#ints, this.#cellsOffset(row) + workerSlot, 0);
  }

  /** Returns the number of connections that all workers have open in this row. */
  openCount(row: number): number {
    return this.#sumOfWorkers(this.#cellsOffset(row));
  }

  /** Does the same as `openCount` without `Atomics`, so changes by other workers may be missing for a moment. */
  approximateOpenCount(row: number): number {
    const offset = this.#cellsOffset(row);
    let sum = 0;
    for (let slot = 0; slot < this.workerSlots; slot += 1) sum += this.#ints[offset + slot] as number;
    return sum;
  }

  /**
   * Returns the counters of one worker, which only this worker may write. The view stays valid when the memory grows.
   */
  workerCounters(row: number, workerSlot: number): Float64Array {
    return new Float64Array(this.#buffer, this.#counterOffset(row, workerSlot) * WORD_BYTES, COUNTERS);
  }

  /** Returns the sum of a counter over all workers. */
  counter(row: number, counter: number): number {
    let sum = 0;
    for (let slot = 0; slot < this.workerSlots; slot += 1)
      sum += this.#doubles[this.#counterOffset(row, slot) + counter] as number;
    return sum;
  }

  /** Returns the cells of a `SecondWindow`. The view stays valid when the memory grows. */
  windowCells(row: number, rate: CountRate): Int32Array {
    const cell = this.#cellsOffset(row) + CELLS_PER_WORKER * this.workerSlots + rate * SECOND_WINDOW_CELLS;
    return new Int32Array(this.#buffer, cell * CELL_BYTES, SECOND_WINDOW_CELLS);
  }

  /**
   * Clears the open connections and waiting readers of a worker that has ended. The counters stay, because they may only
   * increase.
   */
  clearWorker(workerSlot: number): void {
    this.#mapViews();
    for (let row = 0; row < this.#rows; row += 1) {
      Atomics.store(this.#ints, this.#cellsOffset(row) + workerSlot, 0);
      for (const direction of DIRECTIONS) {
        this.setFirstWaiting(row, { direction, workerSlot }, 0n);
        this.setWaitingReaders(row, { direction, workerSlot }, 0);
      }
    }
  }

  /**
   * Removes the limits of the previous owner of a row, and resets its token buckets, windows and counters. No
   * connection may be open in the row.
   */
  clearRow(row: number): void {
    for (let field = 0; field < LIMIT_FIELDS; field += 1) this.setLimit(row, field, Number.POSITIVE_INFINITY);
    for (let field = LIMIT_FIELDS; field < FIRST_WAITING_FIELD; field += 1)
      Atomics.store(this.#longs, this.#rowOffset(row) + field, 0n);
    for (const rate of [NEW_CONNECTIONS, HELLOS, REQUESTS] as const) this.windowCells(row, rate).fill(0);
    for (let slot = 0; slot < this.workerSlots; slot += 1) this.workerCounters(row, slot).fill(0);
  }

  #rowOffset(row: number): number {
    return row * this.#rowWords;
  }

  #waitingOffset(row: number, direction: Direction): number {
    return this.#rowOffset(row) + FIRST_WAITING_FIELD + (direction === 'out' ? this.workerSlots : 0);
  }

  #counterOffset(row: number, workerSlot: number): number {
    return this.#rowOffset(row) + FIRST_WAITING_FIELD + DIRECTIONS.length * this.workerSlots + COUNTERS * workerSlot;
  }

  /** Returns the offset of the first cell of 32 bits. The first cells hold the open connections of the workers. */
  #cellsOffset(row: number): number {
    return row * this.#rowCells + this.#firstCell;
  }

  #readersOffset(row: number, direction: Direction): number {
    return this.#cellsOffset(row) + (direction === 'out' ? 2 : 1) * this.workerSlots;
  }

  /** Returns the sum of one cell of each worker. */
  #sumOfWorkers(offset: number): number {
    let sum = 0;
    for (let slot = 0; slot < this.workerSlots; slot += 1) sum += Atomics.load(this.#ints, offset + slot);
    return sum;
  }

  #mapViews(): void {
    const bytes = this.#buffer.byteLength;
    this.#rows = bytes / WORD_BYTES / this.#rowWords;
    this.#doubles = new Float64Array(this.#buffer, 0, bytes / WORD_BYTES);
    this.#longs = new BigInt64Array(this.#buffer, 0, bytes / WORD_BYTES);
    this.#ints = new Int32Array(this.#buffer, 0, bytes / CELL_BYTES);
  }
}

export interface WaitingReadersKey {
  readonly direction: Direction;
  readonly workerSlot: number;
}

/** Equals no version, because versions are not negative. A number, because V8 compares two numbers without a call. */
export const NO_VERSION = -1;

/** The shared memory for all limits of a proxy. */
export interface LimiterMemory {
  readonly state: LimiterStateMemory;
  readonly clientCounts: SharedArrayBuffer;
  /** The descriptors that each worker has open, see `DescriptorCounter`. */
  readonly descriptorCounts: SharedArrayBuffer;
}

/** The shared memory for all limits, and the slot in which only this worker writes. */
export interface WorkerLimiterMemory {
  readonly memory: LimiterMemory;
  readonly workerSlot: number;
}

export function createLimiterMemory(workerSlots: number): LimiterMemory {
  return {
    state: createLimiterStateMemory(workerSlots),
    clientCounts: createClientCountsMemory(workerSlots),
    descriptorCounts: createDescriptorCountsMemory(workerSlots),
  };
}
