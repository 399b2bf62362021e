// How many connections each client has open to each Service that caps them, over all workers: a client's connections
// are spread over them by the kernel. A count-min sketch (Cormode, Muthukrishnan 2005): its memory is bounded whatever
// clients do, and where clients share cells it counts too many, never too few. So a cap is never exceeded; with 50,000
// other clients here one in a hundred is refused the last connection that it may have, one in 100,000 the last but one.
// The hash is seeded at random, so that nobody can choose to share cells with another.
import { randomInt } from 'node:crypto';

const SKETCH_ROWS = 4;
/** A power of two. */
const SKETCH_COLUMNS = 131_072;
const CELLS_PER_WORKER = SKETCH_ROWS * SKETCH_COLUMNS;
/** Two seeds in front. */
const HEADER_CELLS = 2;

export function createClientCountsMemory(columns: number): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer((HEADER_CELLS + columns * CELLS_PER_WORKER) * Int32Array.BYTES_PER_ELEMENT);
  const cells = new Int32Array(buffer);
  for (let seed = 0; seed < HEADER_CELLS; seed += 1) cells[seed] = randomInt(2 ** 31);
  return buffer;
}

/** What `open` gives and `close` takes back. */
export interface ClientCells {
  readonly first: number;
  readonly step: number;
}

export class ClientCounts {
  readonly #cells: Int32Array;
  readonly #workerSlots: number;
  readonly #ownOffset: number;

  constructor(memory: SharedArrayBuffer, column: number) {
    this.#cells = new Int32Array(memory);
    this.#workerSlots = (this.#cells.length - HEADER_CELLS) / CELLS_PER_WORKER;
    this.#ownOffset = HEADER_CELLS + column * CELLS_PER_WORKER;
  }

  /** One more of `client`, unless that is more than `most`. Counted first and looked at then, as budgets are. */
  tryOpen(client: string, most: number): ClientCells | undefined {
    const mark = this.#cellsOf(client);
    this.#add(mark, 1);
    if (this.#count(mark) <= most) return mark;
    this.#add(mark, -1);
    return undefined;
  }

  close(mark: ClientCells): void {
    this.#add(mark, -1);
  }

  /** A worker is gone, and with it all that it had. */
  static clearWorker(memory: SharedArrayBuffer, column: number): void {
    const bytes = Int32Array.BYTES_PER_ELEMENT;
    new Int32Array(memory, (HEADER_CELLS + column * CELLS_PER_WORKER) * bytes, CELLS_PER_WORKER).fill(0);
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
    let fewest = Number.POSITIVE_INFINITY;
    for (let row = 0; row < SKETCH_ROWS; row += 1) {
      let sum = 0;
      for (let column = 0; column < this.#workerSlots; column += 1) {
        sum += Atomics.load(this.#cells, HEADER_CELLS + column * CELLS_PER_WORKER + cellOf(row, first, step));
      }
      fewest = Math.min(fewest, sum);
    }
    return fewest;
  }
}

function cellOf(row: number, first: number, step: number): number {
  return row * SKETCH_COLUMNS + ((first + Math.imul(row, step)) & (SKETCH_COLUMNS - 1));
}

/** MurmurHash3 (x86, 32 bits) over the characters. */
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
