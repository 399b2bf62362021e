// Counts the open and the new connections of each client to each Service that limits them per client. All workers share
// the counts, because the kernel spreads the connections of one client over all workers. The counts are count-min sketches
// (Cormode and Muthukrishnan, 2005), whose memory has a fixed size for any number of clients. A count may be too high
// but never too low. If 50,000 clients have one connection each, the count of a further client is too high with a
// probability of 1 %, and too high by at least 2 with a probability of 0.001 %.
import { randomInt } from 'node:crypto';

const SKETCH_ROWS = 4;
/** The number of columns of the sketch. Must be a power of two. */
const SKETCH_COLUMNS = 131_072;
const SKETCH_CELLS = SKETCH_ROWS * SKETCH_COLUMNS;
/**
 * The number of cells before the counts. These cells hold random hash seeds, so that an attacker cannot choose an
 * address that has the same cells as a victim's address.
 */
const SEED_CELLS = 2;
/**
 * Two sketches count new connections, one in even and one in odd seconds. A cell holds the count in its lower bits and
 * the number of the second, modulo 2^16, in its upper bits. A count with the number of another second is out of date.
 */
const RATE_SKETCHES = 2;
const COUNT_BITS = 16;
/** The maximum number of new connections in a cell. Further connections in the same second are refused. */
const MAX_NEW_COUNT = 2 ** COUNT_BITS - 1;
const SECOND_NS = 1e9;
/**
 * The first cell of the open connections. Each worker has a sketch of its own, so that the counts of a dead worker can
 * be cleared.
 */
const FIRST_OPEN_CELL = SEED_CELLS + RATE_SKETCHES * SKETCH_CELLS;

export function createClientCountsMemory(workerSlots: number): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer((FIRST_OPEN_CELL + workerSlots * SKETCH_CELLS) * Int32Array.BYTES_PER_ELEMENT);
  const cells = new Int32Array(buffer);
  for (let seed = 0; seed < SEED_CELLS; seed += 1) cells[seed] = randomInt(2 ** 31);
  return buffer;
}

/** Identifies the cells that count one client. */
export interface ClientCells {
  readonly first: number;
  readonly step: number;
}

export class ClientCounts {
  readonly #cells: Int32Array;
  readonly #workerSlots: number;
  readonly #ownOffset: number;

  constructor(memory: SharedArrayBuffer, workerSlot: number) {
    this.#cells = new Int32Array(memory);
    this.#workerSlots = (this.#cells.length - FIRST_OPEN_CELL) / SKETCH_CELLS;
    this.#ownOffset = FIRST_OPEN_CELL + workerSlot * SKETCH_CELLS;
  }

  /** `client` is the text that identifies the client and the Service. */
  cellsOf(client: string): ClientCells {
    const [first = 0, second = 0] = this.#cells;
    return { first: murmurHash3(client, first), step: murmurHash3(client, second) | 1 };
  }

  /**
   * Counts one more connection of the client and returns true, or returns false if the client already has `maxOpen`
   * connections. Adds before comparing, for the reason given at `Limiter.tryOpen`.
   */
  tryOpen(cells: ClientCells, maxOpen: number): boolean {
    this.#add(cells, 1);
    if (this.#count(cells) <= maxOpen) return true;
    this.#add(cells, -1);
    return false;
  }

  close(cells: ClientCells): void {
    this.#add(cells, -1);
  }

  /**
   * Counts one more new connection of the client and returns true, or returns false if the rate is exceeded. `now` is
   * in nanoseconds. The counts are per whole second. The connections of the previous second are assumed to be spread
   * evenly, and count in proportion to the part of that second that is less than a second ago. A client that opens many
   * connections at the end of a second can therefore open up to twice the rate within one second, but not in the long
   * run. Workers that race may each admit one more.
   */
  tryTakeNew(cells: ClientCells, perSecond: number, now: bigint): boolean {
    const seconds = Number(now) / SECOND_NS;
    const second = Math.floor(seconds);
    const previousShare = 1 - (seconds - second);
    let lowest = Number.POSITIVE_INFINITY;
    for (let row = 0; row < SKETCH_ROWS; row += 1) {
      const previous = Math.floor(this.#newCount(cells, row, second - 1) * previousShare);
      lowest = Math.min(lowest, previous + this.#newCount(cells, row, second));
    }
    if (lowest >= Math.min(perSecond, MAX_NEW_COUNT)) return false;
    for (let row = 0; row < SKETCH_ROWS; row += 1) this.#addNew(cells, row, second);
    return true;
  }

  /** Clears the open connections of a worker that has ended. */
  static clearWorker(memory: SharedArrayBuffer, workerSlot: number): void {
    const bytes = Int32Array.BYTES_PER_ELEMENT;
    new Int32Array(memory, (FIRST_OPEN_CELL + workerSlot * SKETCH_CELLS) * bytes, SKETCH_CELLS).fill(0);
  }

  #add({ first, step }: ClientCells, change: 1 | -1): void {
    for (let row = 0; row < SKETCH_ROWS; row += 1)
      Atomics.add(this.#cells, this.#ownOffset + cellOf(row, first, step), change);
  }

  #count({ first, step }: ClientCells): number {
    let lowest = Number.POSITIVE_INFINITY;
    for (let row = 0; row < SKETCH_ROWS; row += 1) {
      let sum = 0;
      for (let slot = 0; slot < this.#workerSlots; slot += 1) {
        sum += Atomics.load(this.#cells, FIRST_OPEN_CELL + slot * SKETCH_CELLS + cellOf(row, first, step));
      }
      lowest = Math.min(lowest, sum);
    }
    return lowest;
  }

  #newCount(cells: ClientCells, row: number, second: number): number {
    return newCountIn(Atomics.load(this.#cells, rateCellOf(cells, row, second)), second);
  }

  #addNew(cells: ClientCells, row: number, second: number): void {
    const cell = rateCellOf(cells, row, second);
    for (;;) {
      const read = Atomics.load(this.#cells, cell);
      const count = newCountIn(read, second);
      if (count === MAX_NEW_COUNT) return;
      if (Atomics.compareExchange(this.#cells, cell, read, (second << COUNT_BITS) | (count + 1)) === read) return;
    }
  }
}

/** Returns the number of new connections in the cell, or 0 if the cell is out of date. */
function newCountIn(cell: number, second: number): number {
  return cell >>> COUNT_BITS === (second & MAX_NEW_COUNT) ? cell & MAX_NEW_COUNT : 0;
}

function rateCellOf({ first, step }: ClientCells, row: number, second: number): number {
  return SEED_CELLS + (second % RATE_SKETCHES) * SKETCH_CELLS + cellOf(row, first, step);
}

function cellOf(row: number, first: number, step: number): number {
  return row * SKETCH_COLUMNS + ((first + Math.imul(row, step)) & (SKETCH_COLUMNS - 1));
}

/** Returns the 32-bit MurmurHash3 (x86 variant) of a text. Each block is one UTF-16 code unit, not four bytes. */
function murmurHash3(text: string, seed: number): number {
  let state = seed;
  for (let index = 0; index < text.length; index += 1) {
    let block = Math.imul(text.charCodeAt(index), 0xcc9e2d51);
    block = Math.imul((block << 15) | (block >>> 17), 0x1b873593);
    state ^= block;
    state = Math.imul((state << 13) | (state >>> 19), 5) + 0xe6546b64;
  }
  state ^= text.length;
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return (state ^ (state >>> 16)) | 0;
}
