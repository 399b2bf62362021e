// The rows of limits as the main thread keeps them: who has which, and which may be given to somebody else.
import { connectionPlaces, descriptorLimit } from '../open-descriptors.ts';
import { type BudgetLimits, setBudget } from './budget.ts';
import { ClientCounts } from './client-counts.ts';
import { createLimitMemory, type LimitMemory, type LimitSeat } from './limit-memory.ts';
import { EVERYBODY_ROW, FIRST_FREE_ROW, LimitSheet, MOST_OPEN } from './limit-sheet.ts';

interface Held {
  readonly row: number;
  /** The mark after which no worker counts anything new here; undefined: in use. */
  leavingAt: number | undefined;
}

export class LimitBook {
  readonly #memory: LimitMemory;
  readonly #sheet: LimitSheet;
  readonly #seats = new Map<number, number>();
  readonly #rows = new Map<string, Held>();
  readonly #leaving = new Set<string>();
  readonly #free: number[] = [];
  #next = FIRST_FREE_ROW;
  #reached = 0;

  /** At most so many workers live at a time; `places` are there for connections and flows of all tenants. */
  constructor(workers: number, places: number = connectionPlaces(descriptorLimit())) {
    this.#memory = createLimitMemory(workers);
    this.#sheet = new LimitSheet(this.#memory.sheet);
    this.#sheet.setLimit(EVERYBODY_ROW, MOST_OPEN, places);
  }

  /** The place of a worker that starts; `unseat` when it has ended. */
  seat(worker: number): LimitSeat {
    const taken = new Set(this.#seats.values());
    const columns = Array.from({ length: this.#sheet.columns }, (_, column) => column);
    const column = columns.find((each) => !taken.has(each));
    if (column === undefined) throw new Error(`there are only ${columns.length} places for workers`);
    this.#seats.set(worker, column);
    return { memory: this.#memory, column };
  }

  /** Its connections are gone with it, and so is what it had of any limit. */
  unseat(worker: number): void {
    const column = this.#seats.get(worker);
    if (column === undefined) return;
    this.#seats.delete(worker);
    this.#sheet.clearColumn(column);
    ClientCounts.clearColumn(this.#memory.clients, column);
  }

  /** The row of `owner`, which stays until `release`. */
  row(owner: string): number {
    const known = this.#rows.get(owner);
    if (known !== undefined) {
      known.leavingAt = undefined;
      this.#leaving.delete(owner);
      return known.row;
    }
    if (this.#free.length === 0) this.#reclaim();
    const row = this.#free.pop() ?? this.#next++;
    this.#sheet.reach(row);
    this.#sheet.clearRow(row);
    this.#rows.set(owner, { row, leavingAt: undefined });
    return row;
  }

  limit(row: number, limits: BudgetLimits): void {
    setBudget(this.#sheet, row, { limits, now: process.hrtime.bigint() });
  }

  /** From `mark` on nothing new of it is counted. */
  release(owner: string, mark: number): void {
    const held = this.#rows.get(owner);
    if (held === undefined || held.leavingAt !== undefined) return;
    held.leavingAt = mark;
    this.#leaving.add(owner);
  }

  /** The mark that all workers have reached. */
  reached(mark: number): void {
    this.#reached = mark;
  }

  /** Open connections and flows. */
  open(owner: string): number {
    const held = this.#rows.get(owner);
    return held === undefined ? 0 : this.#sheet.open(held.row);
  }

  #reclaim(): void {
    for (const owner of this.#leaving) {
      const held = this.#rows.get(owner);
      if (held?.leavingAt === undefined || held.leavingAt > this.#reached || this.#sheet.open(held.row) > 0) continue;
      this.#leaving.delete(owner);
      this.#rows.delete(owner);
      this.#free.push(held.row);
    }
  }
}
