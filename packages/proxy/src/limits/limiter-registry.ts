import { ClientCounts } from './client-counts.ts';
import { clearDescriptorCount, DescriptorCounter } from './descriptor-count.ts';
import { descriptorLimit, maxConnectionsFor } from './descriptor-limit.ts';
import { configureLimiter, type LimiterConfig } from './limiter.ts';
import {
  createLimiterMemory,
  FIRST_FREE_ROW,
  type LimiterMemory,
  LimiterState,
  MAX_OPEN_FIELD,
  PROXY_ROW,
  type WorkerLimiterMemory,
} from './limiter-state.ts';

interface AllocatedRow {
  readonly row: number;
  /** Workers that have reached this mark count no new connection in the row. Undefined while the row is in use. */
  releasedAtMark: number | undefined;
}

/**
 * Assigns rows of the limiter state to tenants and Services, and slots to workers. A released row is reused when no
 * worker uses the row any more and no open connection is counted in the row.
 */
export class LimiterRegistry {
  /** Counts the open descriptors of this process. */
  readonly descriptors: DescriptorCounter;
  readonly #memory: LimiterMemory;
  readonly #state: LimiterState;
  readonly #slotByWorker = new Map<number, number>();
  readonly #rowByOwner = new Map<string, AllocatedRow>();
  readonly #releasedOwners = new Set<string>();
  readonly #freeRows: number[] = [];
  #nextRow = FIRST_FREE_ROW;
  #appliedMark = 0;

  /**
   * At most `workerSlots` workers run at a time. All tenants together may have `maxConnections` connections and flows
   * open.
   */
  constructor(workerSlots: number, maxConnections: number = maxConnectionsFor(descriptorLimit())) {
    this.#memory = createLimiterMemory(workerSlots);
    this.descriptors = new DescriptorCounter(this.#memory.descriptorCounts);
    this.#state = new LimiterState(this.#memory.state);
    this.#state.setLimit(PROXY_ROW, MAX_OPEN_FIELD, maxConnections);
  }

  /** Assigns a free slot to a worker that starts. Throws if no slot is free. */
  addWorker(worker: number): WorkerLimiterMemory {
    const { workerSlots } = this.#state;
    const taken = new Set(this.#slotByWorker.values());
    const workerSlot = Array.from({ length: workerSlots }, (_, slot) => slot).find((slot) => !taken.has(slot));
    if (workerSlot === undefined) throw new Error(`all ${workerSlots} worker slots are taken`);
    this.#slotByWorker.set(worker, workerSlot);
    return { memory: this.#memory, workerSlot };
  }

  /** Frees the slot of a worker that has ended. Clears the worker's counts, because its connections ended with it. */
  removeWorker(worker: number): void {
    const workerSlot = this.#slotByWorker.get(worker);
    if (workerSlot === undefined) return;
    this.#slotByWorker.delete(worker);
    this.#state.clearWorker(workerSlot);
    ClientCounts.clearWorker(this.#memory.clientCounts, workerSlot);
    clearDescriptorCount(this.#memory.descriptorCounts, workerSlot);
  }

  /**
   * Returns the row of an owner. Allocates a row first if the owner has none. `owner` is the entry id of a tenant or
   * Service. The owner keeps the row until `release`.
   */
  allocateRow(owner: string): number {
    const known = this.#rowByOwner.get(owner);
    if (known !== undefined) {
      known.releasedAtMark = undefined;
      this.#releasedOwners.delete(owner);
      return known.row;
    }
    if (this.#freeRows.length === 0) this.#reclaim();
    const row = this.#freeRows.pop() ?? this.#nextRow++;
    this.#state.ensureRow(row);
    this.#state.clearRow(row);
    this.#rowByOwner.set(owner, { row, releasedAtMark: undefined });
    return row;
  }

  configure(row: number, limits: LimiterConfig): void {
    configureLimiter(this.#state, row, { limits, now: process.hrtime.bigint() });
  }

  /** Releases the row of an owner. Workers that have reached `mark` count no new connection in the row. */
  release(owner: string, mark: number): void {
    const allocated = this.#rowByOwner.get(owner);
    if (allocated === undefined || allocated.releasedAtMark !== undefined) return;
    allocated.releasedAtMark = mark;
    this.#releasedOwners.add(owner);
  }

  /** To be called when all workers have reached `mark`. */
  setAppliedMark(mark: number): void {
    this.#appliedMark = mark;
  }

  /** Returns the number of open connections and flows of an owner. */
  openCount(owner: string): number {
    const allocated = this.#rowByOwner.get(owner);
    return allocated === undefined ? 0 : this.#state.openCount(allocated.row);
  }

  #reclaim(): void {
    for (const owner of this.#releasedOwners) {
      const allocated = this.#rowByOwner.get(owner);
      if (
        allocated?.releasedAtMark === undefined ||
        allocated.releasedAtMark > this.#appliedMark ||
        this.#state.openCount(allocated.row) > 0
      )
        continue;
      this.#releasedOwners.delete(owner);
      this.#rowByOwner.delete(owner);
      this.#freeRows.push(allocated.row);
    }
  }
}
