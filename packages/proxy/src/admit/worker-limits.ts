import { type AdmissionContext, type AdmissionRefusal, admit, type Grant, type Limiters } from './admit.ts';
import { Limiter } from './budget.ts';
import { ClientCounts } from './client-counts.ts';
import { createLimiterMemory, type WorkerLimiterMemory } from './limit-memory.ts';
import { LimiterState, PROXY_ROW, UNLIMITED_ROW } from './limit-sheet.ts';

/** Which row of the sheet limits a Service, and which its tenant. */
export type LimiterRows = readonly [uid: string, service: number, tenant: number];

/** Limits as one worker asks for them. */
export class WorkerAdmission {
  readonly #state: LimiterState;
  readonly #workerSlot: number;
  readonly #context: AdmissionContext;
  readonly #limiterByRow = new Map<number, Limiter>();
  readonly #limitersByService = new Map<string, Limiters>();
  readonly #unlimited: Limiters;

  /** Without a seat: alone, and limited by nobody. */
  constructor(seat: WorkerLimiterMemory = { memory: createLimiterMemory(1), workerSlot: 0 }) {
    this.#state = new LimiterState(seat.memory.state);
    this.#workerSlot = seat.workerSlot;
    this.#context = {
      clientCounts: new ClientCounts(seat.memory.clientCounts, seat.workerSlot),
      proxyLimiter: this.#limiterFor(PROXY_ROW),
      now: process.hrtime.bigint,
    };
    this.#unlimited = { service: this.#limiterFor(UNLIMITED_ROW), tenant: this.#limiterFor(UNLIMITED_ROW) };
  }

  /** Open connections stay with the rows that they were counted in. */
  assign(rows: readonly LimiterRows[]): void {
    for (const [uid, service, tenant] of rows) {
      if (service === UNLIMITED_ROW) this.#limitersByService.delete(uid);
      else this.#limitersByService.set(uid, { service: this.#limiterFor(service), tenant: this.#limiterFor(tenant) });
    }
  }

  /** A place for one more connection or flow of this Service, or why there is none; null: it is not known of which. */
  admit(uid: string | null): Grant | AdmissionRefusal {
    return admit((uid === null ? undefined : this.#limitersByService.get(uid)) ?? this.#unlimited, this.#context);
  }

  #limiterFor(row: number): Limiter {
    const known = this.#limiterByRow.get(row);
    if (known !== undefined) return known;
    const budget = new Limiter(this.#state, { row, column: this.#workerSlot });
    this.#limiterByRow.set(row, budget);
    return budget;
  }
}
