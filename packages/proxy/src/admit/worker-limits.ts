import { type AdmitRefusal, type AdmitTools, admit, type Budgets, type Grant } from './admit.ts';
import { Budget } from './budget.ts';
import { ClientCounts } from './client-counts.ts';
import { createLimitMemory, type LimitSeat } from './limit-memory.ts';
import { EVERYBODY_ROW, LimitSheet, UNLIMITED_ROW } from './limit-sheet.ts';

/** Which row of the sheet limits a Service, and which its tenant. */
export type BudgetRows = readonly [uid: string, service: number, tenant: number];

/** Limits as one worker asks for them. */
export class WorkerLimits {
  readonly #sheet: LimitSheet;
  readonly #column: number;
  readonly #tools: AdmitTools;
  readonly #byRow = new Map<number, Budget>();
  readonly #byService = new Map<string, Budgets>();
  readonly #unlimited: Budgets;

  /** Without a seat: alone, and limited by nobody. */
  constructor(seat: LimitSeat = { memory: createLimitMemory(1), column: 0 }) {
    this.#sheet = new LimitSheet(seat.memory.sheet);
    this.#column = seat.column;
    this.#tools = {
      clients: new ClientCounts(seat.memory.clients, seat.column),
      everybody: this.#budget(EVERYBODY_ROW),
      now: process.hrtime.bigint,
    };
    this.#unlimited = { service: this.#budget(UNLIMITED_ROW), tenant: this.#budget(UNLIMITED_ROW) };
  }

  /** Open connections stay with the rows that they were counted in. */
  assign(rows: readonly BudgetRows[]): void {
    for (const [uid, service, tenant] of rows) {
      if (service === UNLIMITED_ROW) this.#byService.delete(uid);
      else this.#byService.set(uid, { service: this.#budget(service), tenant: this.#budget(tenant) });
    }
  }

  /** A place for one more connection or flow of this Service, or why there is none; null: it is not known of which. */
  admit(uid: string | null): Grant | AdmitRefusal {
    return admit((uid === null ? undefined : this.#byService.get(uid)) ?? this.#unlimited, this.#tools);
  }

  #budget(row: number): Budget {
    const known = this.#byRow.get(row);
    if (known !== undefined) return known;
    const budget = new Budget(this.#sheet, { row, column: this.#column });
    this.#byRow.set(row, budget);
    return budget;
  }
}
