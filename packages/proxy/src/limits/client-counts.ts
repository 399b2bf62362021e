// Counts the open connections of each client to each Service that limits connections per client. All workers share the
// counts, because the kernel spreads the connections of one client over all workers. The counts are a count-min sketch
// (Cormode and Muthukrishnan, 2005), whose memory has a fixed size for any number of clients. A count may be too high
// but never too low. If 50,000 clients have one connection each, the count of a further client is too high with a
// probability of 1 %, and too high by at least 2 with a probability of 0.001 %.
import { randomInt } from 'node:crypto';

const SKETCH_ROWS = 4;
/** The number of columns of the sketch. Must be a power of two. */
const SKETCH_COLUMNS = 131_072;
const CELLS_PER_WORKER = SKETCH_ROWS * SKETCH_COLUMNS;
/**
 * The number of cells before the counts. These cells hold random hash seeds, so that an attacker cannot choose an
 * address that has the same cells as a victim's address.
 */
const SEED_CELLS = 2;

export function createClientCountsMemory(workerSlots: number): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer((SEED_CELLS + workerSlots * CELLS_PER_WORKER) * Int32Array.BYTES_PER_ELEMENT);
  const cells = new Int32Array(buffer);
  for (let seed = 0; seed < SEED_CELLS; seed += 1) cells[seed] = randomInt(2 ** 31);
  return buffer;
}

/** Identifies the cells that count one client. `tryOpen` returns this object, and `close` takes it. */
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
    this.#workerSlots = (this.#cells.length - SEED_CELLS) / CELLS_PER_WORKER;
    this.#ownOffset = SEED_CELLS + workerSlot * CELLS_PER_WORKER;
  }

  /**
   * Counts one more connection of the client. Returns undefined if the client already has `maxOpen` connections. Adds
   * before comparing, for the reason given at `Limiter.tryOpen`.
   */
  tryOpen(client: string, maxOpen: number): ClientCells | undefined {
    const cells = this.#cellsOf(client);
    this.#add(cells, 1);
    if (this.#count(cells) <= maxOpen) return cells;
    this.#add(cells, -1);
    return undefined;
  }

  close(cells: ClientCells): void {
    this.#add(cells, -1);
  }

  /** Clears the counts of a worker that has ended. */
  static clearWorker(memory: SharedArrayBuffer, workerSlot: number): void {
    const bytes = Int32Array.BYTES_PER_ELEMENT;
    new Int32Array(memory, (SEED_CELLS + workerSlot * CELLS_PER_WORKER) * bytes, CELLS_PER_WORKER).fill(0);
  }

  #cellsOf(client: string): ClientCells {
    const [first = 0, second = 0] = this.#cells;
    return { first: murmurHash3(client, first), step: murmurHash3(client, second) | 1 };
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
        sum += Atomics.load(this.#cells, SEED_CELLS + slot * CELLS_PER_WORKER + cellOf(row, first, step));
      }
      lowest = Math.min(lowest, sum);
    }
    return lowest;
  }
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
