// A hash table in shared memory that maps each flow to the worker that has the flow. The kernel chooses a socket of the
// port for each datagram, by a hash of the client's address and port. When a worker starts or ends, the kernel chooses
// different sockets for many flows. A worker that receives a datagram of a flow that it does not have looks up the
// flow's owner here. An entry may be overwritten or may collide with another entry. In this case two workers may have
// the same flow, and the endpoint sees a second source port.
import { hashPair, hashText } from '@weir/model/data-plane';

const OWNER_BUCKETS = 16_384;
const ENTRIES_PER_BUCKET = 4;
/**
 * The number of slots for the ids of live workers. A worker's slot is its id modulo this number. Ids are assigned in
 * sequence, so two live workers share a slot only if their ids differ by a multiple of this number.
 */
const MAX_LIVE_WORKERS = 256;
const TAG_BITS = 18;
const ID_MASK = 0x3fff;

/** Creates the memory that all workers of a proxy share: 257 KiB, for 65,536 flows. */
export function createFlowOwnersMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer((MAX_LIVE_WORKERS + OWNER_BUCKETS * ENTRIES_PER_BUCKET) * Uint32Array.BYTES_PER_ELEMENT);
}

/** Removes an ended worker from the live workers. The entries of the worker's flows become free. */
export function removeFlowOwner(memory: SharedArrayBuffer, worker: number): void {
  Atomics.compareExchange(new Uint32Array(memory), worker % MAX_LIVE_WORKERS, worker, 0);
}

export class FlowOwners {
  readonly #cells: Uint32Array;
  readonly #self: number;

  /** `worker` is the id of this worker, positive and unique among the live workers. */
  constructor(memory: SharedArrayBuffer, worker: number) {
    this.#cells = new Uint32Array(memory);
    this.#self = worker;
    Atomics.store(this.#cells, worker % MAX_LIVE_WORKERS, worker);
  }

  /** Returns the id of another live worker that has the flow, or 0 if there is none. */
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
    // The bucket is full, so one entry is overwritten.
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

/** Returns a 32-bit hash of the flow of `client`. The seed `listener` is the hash of the listener's key. */
export function hashOfFlow(listener: number, client: { readonly address: string; readonly port: number }): number {
  return hashPair(hashText(client.address, listener), client.port);
}

function cellOf(flow: number, way: number): number {
  return MAX_LIVE_WORKERS + (flow % OWNER_BUCKETS) * ENTRIES_PER_BUCKET + way;
}

/**
 * Reports whether the entry may belong to the flow. The tag in an entry is the high bits of the flow's hash. The low
 * bits of the hash are the index of the bucket.
 */
function hasTag(entry: number, flow: number): boolean {
  return entry !== 0 && (entry & (2 ** TAG_BITS - 1)) === flow >>> (32 - TAG_BITS);
}

function entryOf(flow: number, worker: number): number {
  return (((worker & ID_MASK) << TAG_BITS) | (flow >>> (32 - TAG_BITS))) >>> 0;
}
