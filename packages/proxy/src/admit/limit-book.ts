// The rows of limits as the main thread keeps them: who has which, and which may be given to somebody else.
import { descriptorLimit, maxConnectionsFor } from '../open-descriptors.ts';
import { configureLimiter, type LimiterConfig } from './budget.ts';
import { ClientCounts } from './client-counts.ts';
import { createLimiterMemory, type LimiterMemory, type WorkerLimiterMemory } from './limit-memory.ts';
import { FIRST_FREE_ROW, LimiterState, MAX_OPEN_FIELD, PROXY_ROW } from './limit-sheet.ts';

interface AllocatedRow {
  readonly row: number;
  /** The mark after which no worker counts anything new here; undefined: in use. */
  releasedAtMark: number | undefined;
}

export class LimiterRegistry {
  readonly #memory: LimiterMemory;
  readonly #state: LimiterState;
  readonly #slotByWorker = new Map<number, number>();
  readonly #rowByOwner = new Map<string, AllocatedRow>();
  readonly #releasedOwners = new Set<string>();
  readonly #freeRows: number[] = [];
  #nextRow = FIRST_FREE_ROW;
  #appliedMark = 0;

  /** At most so many workers live at a time; `places` are there for connections and flows of all tenants. */
  constructor(workers: number, places: number = maxConnectionsFor(descriptorLimit())) {
    this.#memory = createLimiterMemory(workers);
    this.#state = new LimiterState(this.#memory.state);
    this.#state.setLimit(PROXY_ROW, MAX_OPEN_FIELD, places);
  }

  /** The place of a worker that starts; `unseat` when it has ended. */
  addWorker(worker: number): WorkerLimiterMemory {
    const taken = new Set(this.#slotByWorker.values());
    const columns = Array.from({ length: this.#state.workerSlots }, (_, column) => column);
    const workerSlot = columns.find((each) => !taken.has(each));
    if (workerSlot === undefined) throw new Error(`there are only ${columns.length} places for workers`);
    this.#slotByWorker.set(worker, workerSlot);
    return { memory: this.#memory, workerSlot };
  }

  /** Its connections are gone with it, and so is what it had of any limit. */
  removeWorker(worker: number): void {
    const column = this.#slotByWorker.get(worker);
    if (column === undefined) return;
    this.#slotByWorker.delete(worker);
    this.#state.clearWorker(column);
    ClientCounts.clearWorker(this.#memory.clientCounts, column);
  }

  /** The row of `owner`, which stays until `release`. */
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

  /** From `mark` on nothing new of it is counted. */
  release(owner: string, mark: number): void {
    const held = this.#rowByOwner.get(owner);
    if (held === undefined || held.releasedAtMark !== undefined) return;
    held.releasedAtMark = mark;
    this.#releasedOwners.add(owner);
  }

  /** The mark that all workers have reached. */
  setAppliedMark(mark: number): void {
    this.#appliedMark = mark;
  }

  /** Open connections and flows. */
  openCount(owner: string): number {
    const held = this.#rowByOwner.get(owner);
    return held === undefined ? 0 : this.#state.openCount(held.row);
  }

  #reclaim(): void {
    for (const owner of this.#releasedOwners) {
      const held = this.#rowByOwner.get(owner);
      if (
        held?.releasedAtMark === undefined ||
        held.releasedAtMark > this.#appliedMark ||
        this.#state.openCount(held.row) > 0
      )
        continue;
      this.#releasedOwners.delete(owner);
      this.#rowByOwner.delete(owner);
      this.#freeRows.push(held.row);
    }
  }
}
