// Decides whether one more connection or UDP flow of a Service is within all limits, and counts it while it is open.
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

export type AdmissionRefusal = LimiterRefusal | 'no-descriptors';
/**
 * The maximum ratio of a tenant's open connections to the connections that are still free on the proxy. A single tenant
 * gets three quarters of all connections, two tenants get three sevenths each.
 */
const FAIR_SHARE_FACTOR = 3;

/** The limiters that apply to the connections of one Service. */
export interface Limiters {
  readonly service: Limiter;
  readonly tenant: Limiter;
}

interface AdmissionContext {
  readonly clientCounts: ClientCounts;
  /** Counts the connections of all tenants. Its maximum is what the descriptors of the process allow. */
  readonly proxyLimiter: Limiter;
  /** Nanoseconds of a clock that all threads share. */
  readonly now: () => bigint;
}

/** The rows of the limiter state that limit a Service and its tenant. */
export type LimiterRows = readonly [uid: string, service: number, tenant: number];

/** Admits the connections of one worker. */
export class AdmissionController {
  readonly #state: LimiterState;
  readonly #workerSlot: number;
  readonly #context: AdmissionContext;
  readonly #limiterByRow = new Map<number, Limiter>();
  readonly #limitersByService = new Map<string, Limiters>();
  readonly #unlimited: Limiters;

  /** Without `memory` the worker shares no limits, and nothing is limited. */
  constructor({ memory, workerSlot }: WorkerLimiterMemory = { memory: createLimiterMemory(1), workerSlot: 0 }) {
    this.#state = new LimiterState(memory.state);
    this.#workerSlot = workerSlot;
    this.#context = {
      clientCounts: new ClientCounts(memory.clientCounts, workerSlot),
      proxyLimiter: this.#limiterFor(PROXY_ROW),
      now: process.hrtime.bigint,
    };
    this.#unlimited = { service: this.#limiterFor(UNLIMITED_ROW), tenant: this.#limiterFor(UNLIMITED_ROW) };
  }

  /** Sets the rows of Services for new connections. Open connections stay in the rows in which they were counted. */
  assign(rows: readonly LimiterRows[]): void {
    for (const [uid, service, tenant] of rows) {
      if (service === UNLIMITED_ROW) this.#limitersByService.delete(uid);
      else this.#limitersByService.set(uid, { service: this.#limiterFor(service), tenant: this.#limiterFor(tenant) });
    }
  }

  /**
   * Admits one more connection or flow of the Service, or returns the limit that refuses it. `uid` is null while the
   * Service of a connection is not known. The limit per client is checked by `Admission.admitClient`, once the client
   * is known.
   */
  admit(uid: string | null): Admission | AdmissionRefusal {
    return admit((uid === null ? undefined : this.#limitersByService.get(uid)) ?? this.#unlimited, this.#context);
  }

  #limiterFor(row: number): Limiter {
    const known = this.#limiterByRow.get(row);
    if (known !== undefined) return known;
    const limiter = new Limiter(this.#state, { row, workerSlot: this.#workerSlot });
    this.#limiterByRow.set(row, limiter);
    return limiter;
  }
}

function admit(limiters: Limiters, context: AdmissionContext): Admission | AdmissionRefusal {
  const { service, tenant } = limiters;
  if (!service.tryOpen()) return 'connection-limit';
  if (!tenant.tryOpen()) {
    service.close();
    return 'connection-limit';
  }
  context.proxyLimiter.openUnchecked();
  const refusal = shareOrRateRefusal(limiters, context);
  if (refusal === undefined) return new Admission(limiters, context);
  context.proxyLimiter.close();
  tenant.close();
  service.close();
  return refusal;
}

/** Checks the fair share, then the rates. A connection that another limit refuses must not take a token of a rate. */
function shareOrRateRefusal(
  { service, tenant }: Limiters,
  { proxyLimiter, now }: AdmissionContext,
): AdmissionRefusal | undefined {
  if (!isWithinFairShare(tenant, proxyLimiter)) return 'no-descriptors';
  return service.tryTakeNew(now) && tenant.tryTakeNew(now) ? undefined : 'rate-limit';
}

/**
 * Returns whether the tenant may open one more connection without exceeding its fair share. Some connections stay free
 * even if several tenants open as many as they can, so that a tenant with few connections can always open more (dynamic
 * thresholds, Choudhury and Hahne 1998).
 */
function isWithinFairShare(tenant: Limiter, proxyLimiter: Limiter): boolean {
  const { maxOpen } = proxyLimiter;
  return (
    maxOpen === Number.POSITIVE_INFINITY || tenant.openCount <= FAIR_SHARE_FACTOR * (maxOpen - proxyLimiter.openCount)
  );
}

/**
 * One connection or flow that is counted by its limiters until `release`. It stays with these limiters even if its Service
 * gets another tenant.
 */
export class Admission {
  readonly limiters: Limiters;
  readonly #context: AdmissionContext;
  #clientCells: ClientCells | undefined;
  #isReleased = false;

  constructor(limiters: Limiters, context: AdmissionContext) {
    this.limiters = limiters;
    this.#context = context;
  }

  /** Whether this client may open one more connection to the Service. Reads the client's address only if there is a limit. */
  admitClient({ service, settings }: Pick<Route, 'service' | 'settings'>, client: Client): boolean {
    const { connectionsPerClient } = settings.limits;
    if (connectionsPerClient === null) return true;
    const key = `${service.uid}/${clientKeyFor(client.address)}`;
    this.#clientCells = this.#context.clientCounts.tryOpen(key, connectionsPerClient);
    return this.#clientCells !== undefined;
  }

  /** May be called more than once. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.limiters.service.close();
    this.limiters.tenant.close();
    this.#context.proxyLimiter.close();
    if (this.#clientCells !== undefined) this.#context.clientCounts.close(this.#clientCells);
  }
}
