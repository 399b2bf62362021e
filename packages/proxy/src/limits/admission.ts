// Admits connections and UDP flows that are within all limits, and counts them while they are open.
import { type Client, clientKeyFor, type Route } from '@weir/model/data-plane';
import { type ClientCells, ClientCounts } from './client-counts.ts';
import { Limiter, type LimiterRefusal } from './limiter.ts';
import {
  type CountRate,
  createLimiterMemory,
  HELLOS,
  LimiterState,
  NEW_CONNECTIONS,
  PROXY_ROW,
  REQUESTS,
  UNLIMITED_ROW,
  type WorkerLimiterMemory,
} from './limiter-state.ts';

export type AdmissionRefusal = LimiterRefusal | 'no-descriptors';
/**
 * The maximum ratio of a tenant's open connections to the connections that are still free on the proxy. With a factor
 * of 3, a single tenant can use three quarters of all connections, and each of two tenants three sevenths.
 */
const FAIR_SHARE_FACTOR = 3;

/** The limiters that apply to the connections of one Service. */
export interface Limiters {
  readonly service: Limiter;
  readonly tenant: Limiter;
}

interface AdmissionContext {
  readonly clientCounts: ClientCounts;
  /** Counts the connections of all tenants. The maximum number depends on how many descriptors the process may open. */
  readonly proxyLimiter: Limiter;
  /** Returns nanoseconds of a clock that all threads share. */
  readonly now: () => bigint;
  /** Returns milliseconds of a clock of this worker that never goes back. */
  readonly nowMs: () => number;
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

  /**
   * By default the worker uses limiter memory that no other worker shares and that holds no limits. `nowMs` returns
   * milliseconds of a clock of this worker that never goes back.
   */
  constructor(
    { memory, workerSlot }: WorkerLimiterMemory = { memory: createLimiterMemory(1), workerSlot: 0 },
    nowMs: () => number = () => performance.now(),
  ) {
    this.#state = new LimiterState(memory.state);
    this.#workerSlot = workerSlot;
    this.#context = {
      clientCounts: new ClientCounts(memory.clientCounts, workerSlot),
      proxyLimiter: this.#limiterFor(PROXY_ROW),
      now: process.hrtime.bigint,
      nowMs,
    };
    this.#unlimited = { service: this.#limiterFor(UNLIMITED_ROW), tenant: this.#limiterFor(UNLIMITED_ROW) };
  }

  /** Sets the rows in which new connections of Services are counted. Open connections stay in their previous rows. */
  assign(rows: readonly LimiterRows[]): void {
    for (const [uid, service, tenant] of rows) {
      if (service === UNLIMITED_ROW) this.#limitersByService.delete(uid);
      else this.#limitersByService.set(uid, { service: this.#limiterFor(service), tenant: this.#limiterFor(tenant) });
    }
  }

  /**
   * Admits one more connection or flow of the Service, or returns why the connection or flow is refused. `uid` is null
   * while the Service is not known. `Admission.admitClient` checks the limit per client later, when the client is
   * known.
   *
   * `open` is the admission of a connection that is already open and now carries a request of this Service. If both
   * Services have the same tenant, only the limits of this Service are checked, because the tenant opens no further
   * connection.
   */
  admit(uid: string | null, open?: Admission): Admission | AdmissionRefusal {
    const limiters = (uid === null ? undefined : this.#limitersByService.get(uid)) ?? this.#unlimited;
    if (open?.limiters.tenant === limiters.tenant) return admitAgain(limiters, this.#context, open);
    return admit(limiters, this.#context);
  }

  /** Returns how many connections per second the Service's tenant may open, or Infinity if there is no limit. */
  newConnectionsPerSecond(uid: string): number {
    return (this.#limitersByService.get(uid) ?? this.#unlimited).tenant.newConnectionsPerSecond;
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

function admitAgain(limiters: Limiters, context: AdmissionContext, open: Admission): Admission | AdmissionRefusal {
  const { service } = limiters;
  if (!service.tryOpen()) return 'connection-limit';
  if (service.tryTake(NEW_CONNECTIONS, context.now, context.nowMs())) return new Admission(limiters, context, open);
  service.close();
  return 'rate-limit';
}

/**
 * Returns why the fair share or a rate limit refuses the connection, or undefined if the connection is within both.
 * Checks the rates last, because a connection that another limit refuses must not count in a rate.
 */
function shareOrRateRefusal(limiters: Limiters, context: AdmissionContext): AdmissionRefusal | undefined {
  if (!isWithinFairShare(limiters.tenant, context.proxyLimiter)) return 'no-descriptors';
  return tryTake(limiters, NEW_CONNECTIONS, context) ? undefined : 'rate-limit';
}

/** Counts one more unit in the rates of the Service and its tenant, or in neither of them if one rate is exceeded. */
function tryTake({ service, tenant }: Limiters, rate: CountRate, { now, nowMs }: AdmissionContext): boolean {
  const takenAtMs = nowMs();
  if (!service.tryTake(rate, now, takenAtMs)) return false;
  if (tenant.tryTake(rate, now, takenAtMs)) return true;
  service.giveBack(rate);
  return false;
}

/**
 * Reports whether the tenant's open connections, including the new one, are within its fair share. Some connections
 * stay free even if several tenants use their whole shares. A tenant with few connections can therefore always open
 * more (dynamic thresholds, Choudhury and Hahne 1998).
 */
function isWithinFairShare(tenant: Limiter, proxyLimiter: Limiter): boolean {
  const { maxOpen } = proxyLimiter;
  return maxOpen === Infinity || tenant.openCount <= FAIR_SHARE_FACTOR * (maxOpen - proxyLimiter.openCount);
}

/**
 * One admitted connection or flow, or the part of a connection that belongs to one Service. The limiters count the
 * connection or flow until `release`. The limiters stay the same even if the Service gets another tenant.
 */
export class Admission {
  readonly limiters: Limiters;
  readonly #context: AdmissionContext;
  #clientCells: ClientCells | undefined;
  #isReleased = false;
  /** The first admission of the connection. The tenant and the proxy count the connection once. */
  readonly #first: Admission;
  /** How many admissions of the connection are not released. Counted in the first admission. */
  #openCount = 0;

  /** `open` is another admission of the same connection by the same tenant. */
  constructor(limiters: Limiters, context: AdmissionContext, open?: Admission) {
    this.limiters = limiters;
    this.#context = context;
    this.#first = open === undefined ? this : open.#first;
    this.#first.#openCount += 1;
  }

  /**
   * Returns false if the ClientHellos of the tenant exceed the rate of new connections. Clients could otherwise connect
   * within the rate and then send all their ClientHellos at the same moment.
   */
  admitHello(): boolean {
    return tryTake(this.limiters, HELLOS, this.#context);
  }

  /** Returns false if the requests of the Service or its tenant exceed their rate. */
  admitRequest(): boolean {
    return tryTake(this.limiters, REQUESTS, this.#context);
  }

  /**
   * Returns false if the client has reached its limit of open or new connections to the Service; otherwise counts this
   * connection. Reads the client's address only if there is a limit.
   */
  admitClient({ service, settings }: Pick<Route, 'service' | 'settings'>, client: Client): boolean {
    const { connectionsPerClient, newConnectionsPerSecondPerClient } = settings.limits;
    if (connectionsPerClient === null && newConnectionsPerSecondPerClient === undefined) return true;
    const { clientCounts, now } = this.#context;
    const cells = clientCounts.cellsOf(`${service.uid}/${clientKeyFor(client.address)}`);
    if (connectionsPerClient !== null) {
      if (!clientCounts.tryOpen(cells, connectionsPerClient)) return false;
      // `release` counts the connection as closed, also if the rate refuses it.
      this.#clientCells = cells;
    }
    return (
      newConnectionsPerSecondPerClient === undefined ||
      clientCounts.tryTakeNew(cells, newConnectionsPerSecondPerClient, now())
    );
  }

  /** Stops counting this connection or flow. May be called more than once. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.limiters.service.close();
    if (this.#clientCells !== undefined) this.#context.clientCounts.close(this.#clientCells);
    this.#first.#openCount -= 1;
    if (this.#first.#openCount > 0) return;
    this.limiters.tenant.close();
    this.#context.proxyLimiter.close();
  }
}
