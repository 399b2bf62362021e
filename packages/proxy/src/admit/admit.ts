// Whether one more connection or UDP flow of a Service is let in, as far as limits go. The one door to them.
import { type Client, clientKeyFor, type Route } from '@weir/model/data-plane';
import type { Limiter, LimiterRefusal } from './budget.ts';
import type { ClientCells, ClientCounts } from './client-counts.ts';

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
export function admit(budgets: Limiters, tools: AdmissionContext): Grant | AdmissionRefusal {
  const { service, tenant } = budgets;
  if (!service.tryOpen()) return 'connection-limit';
  if (!tenant.tryOpen()) {
    service.close();
    return 'connection-limit';
  }
  tools.proxyLimiter.openUnchecked();
  const refusal = shareOrRateRefusal(budgets, tools);
  if (refusal === undefined) return new Grant(budgets, tools);
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
export class Grant {
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
