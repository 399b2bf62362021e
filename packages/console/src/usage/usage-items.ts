import { add, type Counters, type Period, type TenantEntry, type UsageRow, ZERO } from '@weir/model';

/** `items` of `weir usage -o json`. */
export interface UsageItem extends Counters {
  readonly tenant: string;
  readonly month: Period;
  /** Bytes a month, received and sent together; null: unlimited. */
  readonly trafficPerMonth: number | null;
  readonly services: readonly ServiceUsage[];
}

export interface ServiceUsage extends Counters {
  readonly namespace: string;
  readonly name: string;
}

/**
 * One item per tenant of the table or the ledger, sorted by name. A Service that was deleted and made again under its name
 * is one line: the tenant pays for the name.
 */
export function usageItemsFor(
  tenants: readonly TenantEntry[],
  rows: readonly UsageRow[],
  month: Period,
): readonly UsageItem[] {
  const known = new Map(tenants.map((tenant) => [tenant.name, tenant]));
  const byTenant = Map.groupBy(rows, (row) => row.tenant);
  const names = [...new Set([...known.keys(), ...byTenant.keys()])].sort();
  return names.map((tenant) => {
    const services = servicesFor(byTenant.get(tenant) ?? []);
    return {
      tenant,
      month,
      ...sum(services),
      trafficPerMonth: known.get(tenant)?.limits.trafficPerMonth ?? null,
      services,
    };
  });
}

function servicesFor(rows: readonly UsageRow[]): ServiceUsage[] {
  const byName = Map.groupBy(rows, (row) => `${row.namespace}/${row.name}`);
  const services = [...byName.values()].flatMap((same) => {
    const first = same[0];
    return first === undefined ? [] : [{ namespace: first.namespace, name: first.name, ...sumOf(same) }];
  });
  return services.sort((a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name));
}

function sumOf(rows: readonly UsageRow[]): Counters {
  return rows.reduce((total, row) => add(total, row.counters), ZERO);
}

function sum(services: readonly Counters[]): Counters {
  return services.reduce<Counters>((total, each) => add(total, each), ZERO);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
