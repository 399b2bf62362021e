import { type Client, clientKeyFor, type Route } from '@weir/model/data-plane';
import { type ClientCells, ClientCounts } from './client-counts.ts';
import { Limiter, type LimiterRefusal } from './limiter.ts';
import {
  createLimiterMemory,
  LimiterState,
  PROXY_ROW,
  UNLIMITED_ROW,
  type WorkerLimiterMemory,
} from './limiter-state.ts';

// Whether one more connection or UDP flow of a Service is let in, as far as limits go. The one door to them.
export type AdmissionRefusal = LimiterRefusal | 'no-descriptors';
/** One tenant may have so many times as many places as are left free: alone three quarters of all, two three sevenths each. */
const FAIR_SHARE_FACTOR = 3;

/** The budgets that a Service draws on. */
export interface Limiters {
  readonly service: Limiter;
  readonly tenant: Limiter;
}

export interface AdmissionContext {
  readonly clientCounts: ClientCounts;
  /** All tenants of this proxy: as many as there are descriptors for. */
  readonly proxyLimiter: Limiter;
  /** Nanoseconds, the same in all threads. */
  readonly now: () => bigint;
}

/**
 * A place, or why there is none. What is asked of few comes last: a rate is not used up by what other limits refuse. The
 * cap per client is for `capClient`, when the client is known.
 */
export function admit(budgets: Limiters, tools: AdmissionContext): Admission | AdmissionRefusal {
  const { service, tenant } = budgets;
  if (!service.tryOpen()) return 'connection-limit';
  if (!tenant.tryOpen()) {
    service.close();
    return 'connection-limit';
  }
  tools.proxyLimiter.openUnchecked();
  const refusal = shareOrRateRefusal(budgets, tools);
  if (refusal === undefined) return new Admission(budgets, tools);
  tools.proxyLimiter.close();
  tenant.close();
  service.close();
  return refusal;
}

function shareOrRateRefusal(
  { service, tenant }: Limiters,
  { proxyLimiter, now }: AdmissionContext,
): AdmissionRefusal | undefined {
  if (!isWithinFairShare(tenant, proxyLimiter)) return 'no-descriptors';
  return service.tryTakeNew(now) && tenant.tryTakeNew(now) ? undefined : 'rate-limit';
}

/**
 * Whoever has no limit leaves room for others all the same (dynamic thresholds of Choudhury and Hahne, 1998): however many
 * tenants take what they can, some places stay free, and a tenant that has few gets them.
 */
function isWithinFairShare(tenant: Limiter, everybody: Limiter): boolean {
  const places = everybody.maxOpen;
  return places === Number.POSITIVE_INFINITY || tenant.openCount <= FAIR_SHARE_FACTOR * (places - everybody.openCount);
}

/** A place that is taken until `release`. It stays with the budgets that gave it, also when its Service changes hands. */
export class Admission {
  readonly limiters: Limiters;
  readonly #context: AdmissionContext;
  #clientCells: ClientCells | undefined;
  #isReleased = false;

  constructor(budgets: Limiters, tools: AdmissionContext) {
    this.limiters = budgets;
    this.#context = tools;
  }

  /** Whether this client may have one more of the Service. It is not even asked who it is where nothing caps it. */
  admitClient({ service, settings }: Pick<Route, 'service' | 'settings'>, client: Client): boolean {
    const most = settings.limits.connectionsPerClient;
    if (most === null) return true;
    this.#clientCells = this.#context.clientCounts.tryOpen(`${service.uid}/${clientKeyFor(client.address)}`, most);
    return this.#clientCells !== undefined;
  }

  /** Once; again does nothing. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.limiters.service.close();
    this.limiters.tenant.close();
    this.#context.proxyLimiter.close();
    if (this.#clientCells !== undefined) this.#context.clientCounts.close(this.#clientCells);
  }
}

/** Which row of the sheet limits a Service, and which its tenant. */
export type LimiterRows = readonly [uid: string, service: number, tenant: number];

/** Limits as one worker asks for them. */
export class AdmissionController {
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
  admit(uid: string | null): Admission | AdmissionRefusal {
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
