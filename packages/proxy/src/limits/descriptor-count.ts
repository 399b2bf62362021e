// Counts the open descriptors of this process. Since Linux 6.2 the size of /proc/self/fd is this number. With an older
// kernel a process must list the folder, which takes milliseconds if there are thousands of connections. So each worker
// counts the sockets that its transports open and close, in memory that all threads of the process share.
import type { EventEmitter } from 'node:events';
import { readdirSync, statSync } from 'node:fs';

const DESCRIPTOR_FOLDER = '/proc/self/fd';

/** Creates the memory for the counts of all workers. */
export function createDescriptorCountsMemory(workerSlots: number): SharedArrayBuffer {
  return new SharedArrayBuffer(workerSlots * Int32Array.BYTES_PER_ELEMENT);
}

/** The counts of all workers. Until `shareDescriptorCount` is called, this is one count that no other thread sees. */
let counts: Int32Array = new Int32Array(1);
let ownSlot = 0;

/** Makes this worker count its descriptors in `memory`. Must be called before a transport opens a descriptor. */
export function shareDescriptorCount(memory: SharedArrayBuffer, workerSlot: number): void {
  counts = new Int32Array(memory);
  ownSlot = workerSlot;
}

/** Clears the count of a worker that has ended and whose descriptors are closed. */
export function clearDescriptorCount(memory: SharedArrayBuffer, workerSlot: number): void {
  new Int32Array(memory)[workerSlot] = 0;
}

/** To be called when a transport of this thread has opened (1) or closed (-1) a descriptor. */
export function countDescriptor(change: 1 | -1): void {
  counts[ownSlot] = (counts[ownSlot] as number) + change;
}

/** Counts the descriptor of a socket of Node.js until the socket has closed. */
export function countSocket(socket: EventEmitter): void {
  countDescriptor(1);
  socket.once('close', onSocketClosed);
}

function onSocketClosed(): void {
  countDescriptor(-1);
}

export interface DescriptorSources {
  /** Returns the kernel's count of the open descriptors, or 0 if the kernel has none. */
  count(): number;
  /** Reads the list of the open descriptors, and returns its length. */
  list(): number;
}

/** Counts the descriptors that all threads of this process have open. */
export class DescriptorCounter {
  readonly #counts: Int32Array;
  readonly #sources: DescriptorSources;
  /** The number of descriptors that no worker counts. Undefined if the kernel has a count. */
  readonly #uncounted: number | undefined;

  /** Reads the list of the descriptors once if the kernel has no count. */
  constructor(memory: SharedArrayBuffer, sources: DescriptorSources = PROC_SOURCES) {
    this.#counts = new Int32Array(memory);
    this.#sources = sources;
    if (sources.count() === 0) this.#uncounted = sources.list() - this.#countedByWorkers();
  }

  /**
   * The number of open descriptors. If the kernel has no count, this number does not change when a thread other than a
   * worker opens or closes a descriptor.
   */
  get open(): number {
    return this.#uncounted === undefined ? this.#sources.count() : this.#uncounted + this.#countedByWorkers();
  }

  #countedByWorkers(): number {
    let sum = 0;
    for (const count of this.#counts) sum += count;
    return sum;
  }
}

const PROC_SOURCES: DescriptorSources = {
  count: () => orZero(() => statSync(DESCRIPTOR_FOLDER).size),
  // Without the descriptor of the folder itself, which is open while the folder is read.
  list: () => orZero(() => readdirSync(DESCRIPTOR_FOLDER).length - 1),
};

/** Returns 0 if the system has no /proc. */
function orZero(read: () => number): number {
  try {
    return read();
  } catch {
    return 0;
  }
}
