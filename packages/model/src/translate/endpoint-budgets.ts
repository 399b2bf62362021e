import type { ServiceRecord } from './service-registry.ts';

/** The demand of a Service whose endpoints alone exceed the limit of the tenant. */
export const EXCESSIVE_BYTES: number = 2 ** 40;

/**
 * Divides the bytes that a tenant's limit leaves for endpoints among the tenant's Services. If the endpoints of all Services do not fit,
 * the Services with the most endpoints get equal shares, and the other Services keep all their endpoints. The result depends only on the
 * Services and not on the order of their changes.
 */
export class EndpointBudgets {
  readonly #byTenant = new Map<string, TenantDemands>();
  readonly #tenantByRecord = new Map<ServiceRecord, string>();
  /** The bytes of each Service whose endpoints do not all fit. */
  readonly #budgets = new Map<ServiceRecord, number>();

  /** Records how many bytes all endpoints of a Service take. The tenant is null, or the bytes are 0, if the Service has no endpoints. */
  setDemand(record: ServiceRecord, tenant: string | null, bytes: number): void {
    this.#delete(record);
    if (tenant === null || bytes === 0) return;
    const demands = this.#byTenant.get(tenant) ?? { bytesByRecord: new Map(), sum: 0, reduced: new Set() };
    this.#byTenant.set(tenant, demands);
    demands.bytesByRecord.set(record, bytes);
    demands.sum += bytes;
    this.#tenantByRecord.set(record, tenant);
  }

  /** Returns the bytes that the endpoints of a Service may take; Infinity if all its endpoints fit. */
  budgetOf(record: ServiceRecord): number {
    return this.#budgets.get(record) ?? Number.POSITIVE_INFINITY;
  }

  /** Divides `bytes` among the Services of one tenant. Returns the Services whose budget changed. */
  divide(tenant: string, bytes: number): ServiceRecord[] {
    const demands = this.#byTenant.get(tenant);
    if (demands === undefined) return [];
    const budgets = demands.sum <= bytes ? NO_BUDGETS : equalShares(demands.bytesByRecord, Math.max(0, bytes));
    const changed = [...new Set([...demands.reduced, ...budgets.keys()])].filter(
      (record) => this.#budgets.get(record) !== budgets.get(record),
    );
    for (const record of changed) {
      const budget = budgets.get(record);
      if (budget === undefined) this.#budgets.delete(record);
      else this.#budgets.set(record, budget);
    }
    demands.reduced = new Set(budgets.keys());
    return changed;
  }

  #delete(record: ServiceRecord): void {
    const tenant = this.#tenantByRecord.get(record);
    const demands = tenant === undefined ? undefined : this.#byTenant.get(tenant);
    if (tenant === undefined || demands === undefined) return;
    demands.sum -= demands.bytesByRecord.get(record) ?? 0;
    demands.bytesByRecord.delete(record);
    demands.reduced.delete(record);
    this.#budgets.delete(record);
    this.#tenantByRecord.delete(record);
    if (demands.bytesByRecord.size === 0) this.#byTenant.delete(tenant);
  }
}

interface TenantDemands {
  readonly bytesByRecord: Map<ServiceRecord, number>;
  /** The sum of `bytesByRecord`. */
  sum: number;
  /** The Services that have a budget. */
  reduced: Set<ServiceRecord>;
}

const NO_BUDGETS: ReadonlyMap<ServiceRecord, number> = new Map();

/** Returns the budgets of the Services that get less than they demand (max-min fairness: the smallest demands are met first). */
function equalShares(demands: ReadonlyMap<ServiceRecord, number>, bytes: number): ReadonlyMap<ServiceRecord, number> {
  const ascending = [...demands].sort(([, a], [, b]) => a - b);
  let left = bytes;
  for (const [index, [, demand]] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index));
    if (demand > share) return new Map(ascending.slice(index).map(([record]) => [record, share]));
    left -= demand;
  }
  return NO_BUDGETS;
}
