import {
  addCounters,
  type Counters,
  compareText,
  type RoutingTable,
  type TenantEntry,
  type UsagePeriod,
  type UsageRow,
  ZERO_COUNTERS,
} from '@weir/model';
import { type AuthorizationScope, isNamespaceVisible, visibleTenants } from '../access/authorization-scope.ts';

/** One of the `items` of `weir usage -o json`. */
export interface UsageItem extends Counters {
  readonly tenant: string;
  readonly month: UsagePeriod;
  /** Limit for received and sent bytes together in one month. Null if unlimited. */
  readonly trafficPerMonth: number | null;
  /** The received and sent bytes at the end of the current month, from `forecastsFor`. Null for other months, or if it is unknown. */
  readonly forecastBytes: number | null;
  readonly services: readonly ServiceUsageItem[];
}

export interface ServiceUsageItem extends Counters {
  readonly namespace: string;
  readonly name: string;
}

/**
 * Returns one item per tenant in the table or the ledger, sorted by name. Counts a Service that was deleted and created again with the same
 * name as one Service, although the UID changed. `forecasts` has the forecasts of `month` by tenant.
 */
export function usageItemsFor(
  tenants: readonly TenantEntry[],
  rows: readonly UsageRow[],
  { month, forecasts = new Map() }: { readonly month: UsagePeriod; readonly forecasts?: ReadonlyMap<string, number> },
): readonly UsageItem[] {
  const tenantsByName = new Map(tenants.map((tenant) => [tenant.name, tenant]));
  const byTenant = Map.groupBy(rows, (row) => row.tenant);
  const names = [...new Set([...tenantsByName.keys(), ...byTenant.keys()])].sort();
  return names.map((tenant) => {
    const services = serviceUsageFor(byTenant.get(tenant) ?? []);
    return {
      tenant,
      month,
      ...sumCounters(services),
      trafficPerMonth: tenantsByName.get(tenant)?.limits.trafficPerMonth ?? null,
      forecastBytes: forecasts.get(tenant) ?? null,
      services,
    };
  });
}

function serviceUsageFor(rows: readonly UsageRow[]): ServiceUsageItem[] {
  const byName = Map.groupBy(rows, (row) => `${row.namespace}/${row.name}`);
  const services = [...byName.values()].flatMap((serviceRows) => {
    const first = serviceRows[0];
    return first === undefined ? [] : [{ namespace: first.namespace, name: first.name, ...sumRows(serviceRows) }];
  });
  return services.sort((a, b) => compareText(a.namespace, b.namespace) || compareText(a.name, b.name));
}

function sumRows(rows: readonly UsageRow[]): Counters {
  return rows.reduce((total, row) => addCounters(total, row.counters), ZERO_COUNTERS);
}

function sumCounters(services: readonly Counters[]): Counters {
  return services.reduce<Counters>((total, each) => addCounters(total, each), ZERO_COUNTERS);
}

/**
 * Returns the usage that a scope shows: the Services of the scope's namespaces, and the totals of the tenants that own these namespaces. If
 * a namespace belonged to another tenant before, that tenant's item contains only the sum of the visible Services.
 */
export function visibleUsage(
  scope: AuthorizationScope,
  table: RoutingTable,
  items: readonly UsageItem[],
): readonly UsageItem[] {
  if (scope.kind === 'all') return items;
  const tenants = visibleTenants(scope, table);
  return items.flatMap((item) => {
    const services = item.services.filter(({ namespace }) => isNamespaceVisible(scope, namespace));
    if (tenants?.has(item.tenant)) return [{ ...item, services }];
    if (services.length === 0) return [];
    // Lists the properties one by one, because no counter of the whole tenant may remain.
    const { tenant, month } = item;
    return [{ tenant, month, ...sumCounters(services), trafficPerMonth: null, forecastBytes: null, services }];
  });
}
