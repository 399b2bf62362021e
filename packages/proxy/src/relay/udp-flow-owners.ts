// Which worker has a flow. The kernel spreads datagrams over the sockets of a port by a hash of the client, and gives many
// of them to another socket when one comes or goes: a worker starts, or is replaced. Whoever gets a datagram of a flow that
// it does not know looks here. Entries may be overwritten, and may be wrong: then a worker opens a flow that another one had,
// and only the endpoint notices, by the source port.
import { hashPair, hashText } from '@weir/model/data-plane';

const OWNER_BUCKETS = 16_384;
const ENTRIES_PER_BUCKET = 4;
/** Living workers by the low bits of their ids, which are given out one after the other. */
const MAX_LIVE_WORKERS = 256;
const TAG_BITS = 18;
const ID_MASK = 0x3fff;

/** For all workers of a proxy: 257 KiB, 65,536 flows. */
export function createFlowOwnersMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer((MAX_LIVE_WORKERS + OWNER_BUCKETS * ENTRIES_PER_BUCKET) * Uint32Array.BYTES_PER_ELEMENT);
}

/** What it owned is anybody's now. */
export function removeFlowOwner(memory: SharedArrayBuffer, worker: number): void {
  Atomics.compareExchange(new Uint32Array(memory), worker % MAX_LIVE_WORKERS, worker, 0);
}

export class FlowOwners {
  readonly #cells: Uint32Array;
  readonly #self: number;

  /** `worker` is above 0, and no two that live are the same. */
  constructor(memory: SharedArrayBuffer, worker: number) {
    this.#cells = new Uint32Array(memory);
    this.#self = worker;
    Atomics.store(this.#cells, worker % MAX_LIVE_WORKERS, worker);
  }

  /** The living worker that has it; 0: none, or this one. */
  ownerOf(flow: number): number {
    for (let way = 0; way < ENTRIES_PER_BUCKET; way += 1) {
      const entry = Atomics.load(this.#cells, cellOf(flow, way));
      if (!hasTag(entry, flow)) continue;
      const owner = this.#livingOwner(entry);
      if (owner !== 0 && owner !== this.#self) return owner;
    }
    return 0;
  }

  claim(flow: number): void {
    const own = entryOf(flow, this.#self);
    for (let way = 0; way < ENTRIES_PER_BUCKET; way += 1) {
      const cell = cellOf(flow, way);
      const entry = Atomics.load(this.#cells, cell);
      if (entry === own) return;
      const isFree = entry === 0 || hasTag(entry, flow) || this.#livingOwner(entry) === 0;
      if (isFree && Atomics.compareExchange(this.#cells, cell, entry, own) === entry) return;
    }
    // All taken: one of the others is forgotten.
    Atomics.store(this.#cells, cellOf(flow, (flow >>> 14) % ENTRIES_PER_BUCKET), own);
  }

  release(flow: number): void {
    const own = entryOf(flow, this.#self);
    for (let way = 0; way < ENTRIES_PER_BUCKET; way += 1)
      Atomics.compareExchange(this.#cells, cellOf(flow, way), own, 0);
  }

  #livingOwner(entry: number): number {
    const id = entry >>> TAG_BITS;
    const living = Atomics.load(this.#cells, id % MAX_LIVE_WORKERS);
    return (living & ID_MASK) === id ? living : 0;
  }
}

/** 32 bits of a flow: the listener's hash, and its client. */
export function hashOfFlow(listener: number, client: { readonly address: string; readonly port: number }): number {
  return hashPair(hashText(client.address, listener), client.port);
}

function cellOf(flow: number, way: number): number {
  return MAX_LIVE_WORKERS + (flow % OWNER_BUCKETS) * ENTRIES_PER_BUCKET + way;
}

/** What the bucket does not say of the flow already. */
function hasTag(entry: number, flow: number): boolean {
  return entry !== 0 && (entry & (2 ** TAG_BITS - 1)) === flow >>> (32 - TAG_BITS);
}

function entryOf(flow: number, worker: number): number {
  return (((worker & ID_MASK) << TAG_BITS) | (flow >>> (32 - TAG_BITS))) >>> 0;
}
