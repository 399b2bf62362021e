// A hash table in shared memory that maps each flow to the worker that has it. The kernel spreads datagrams over the
// sockets of a port by a hash of the client, and gives many flows to another socket when a worker starts or ends. A
// worker that gets a datagram of an unknown flow looks up its owner here. Entries may be overwritten or collide; then
// two workers have the flow, and the endpoint sees a second source port.
import { hashPair, hashText } from '@weir/model/data-plane';

const OWNER_BUCKETS = 16_384;
const ENTRIES_PER_BUCKET = 4;
/**
 * The number of places for ids of live workers, indexed by the low bits of the id. Ids are assigned in sequence, so
 * live workers do not collide.
 */
const MAX_LIVE_WORKERS = 256;
const TAG_BITS = 18;
const ID_MASK = 0x3fff;

/** Creates the memory for all workers of a proxy: 257 KiB for 65,536 flows. */
export function createFlowOwnersMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer((MAX_LIVE_WORKERS + OWNER_BUCKETS * ENTRIES_PER_BUCKET) * Uint32Array.BYTES_PER_ELEMENT);
}

/** Removes a worker that has ended from the live workers. Its entries become free. */
export function removeFlowOwner(memory: SharedArrayBuffer, worker: number): void {
  Atomics.compareExchange(new Uint32Array(memory), worker % MAX_LIVE_WORKERS, worker, 0);
}

export class FlowOwners {
  readonly #cells: Uint32Array;
  readonly #self: number;

  /** `worker` is positive and unique among the live workers. */
  constructor(memory: SharedArrayBuffer, worker: number) {
    this.#cells = new Uint32Array(memory);
    this.#self = worker;
    Atomics.store(this.#cells, worker % MAX_LIVE_WORKERS, worker);
  }

  /** Returns the live worker that has the flow, or 0 if no worker or this worker has it. */
  ownerOf(flow: number): number {
    for (let way = 0; way < ENTRIES_PER_BUCKET; way += 1) {
      const entry = Atomics.load(this.#cells, cellOf(flow, way));
      if (!hasTag(entry, flow)) continue;
      const owner = this.#liveOwner(entry);
      if (owner !== 0 && owner !== this.#self) return owner;
    }
    return 0;
  }

  claim(flow: number): void {
    const ownEntry = entryOf(flow, this.#self);
    for (let way = 0; way < ENTRIES_PER_BUCKET; way += 1) {
      const cell = cellOf(flow, way);
      const entry = Atomics.load(this.#cells, cell);
      if (entry === ownEntry) return;
      const isFree = entry === 0 || hasTag(entry, flow) || this.#liveOwner(entry) === 0;
      if (isFree && Atomics.compareExchange(this.#cells, cell, entry, ownEntry) === entry) return;
    }
    // The bucket is full: overwrite one entry.
    Atomics.store(this.#cells, cellOf(flow, (flow >>> 14) % ENTRIES_PER_BUCKET), ownEntry);
  }

  release(flow: number): void {
    const ownEntry = entryOf(flow, this.#self);
    for (let way = 0; way < ENTRIES_PER_BUCKET; way += 1)
      Atomics.compareExchange(this.#cells, cellOf(flow, way), ownEntry, 0);
  }

  #liveOwner(entry: number): number {
    const id = entry >>> TAG_BITS;
    const worker = Atomics.load(this.#cells, id % MAX_LIVE_WORKERS);
    return (worker & ID_MASK) === id ? worker : 0;
  }
}

/** Returns a 32-bit hash of the flow of `client`, seeded with the hash of its listener. */
export function hashOfFlow(listener: number, client: { readonly address: string; readonly port: number }): number {
  return hashPair(hashText(client.address, listener), client.port);
}

function cellOf(flow: number, way: number): number {
  return MAX_LIVE_WORKERS + (flow % OWNER_BUCKETS) * ENTRIES_PER_BUCKET + way;
}

/**
 * Returns whether the entry may belong to the flow. The tag is the high bits of the flow's hash; the low bits are the
 * index of the bucket.
 */
function hasTag(entry: number, flow: number): boolean {
  return entry !== 0 && (entry & (2 ** TAG_BITS - 1)) === flow >>> (32 - TAG_BITS);
}

function entryOf(flow: number, worker: number): number {
  return (((worker & ID_MASK) << TAG_BITS) | (flow >>> (32 - TAG_BITS))) >>> 0;
}
