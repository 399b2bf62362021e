import {
  addCounters,
  type Counters,
  type RoutingTable,
  type TenantEntry,
  type UsagePeriod,
  type UsageRow,
  ZERO_COUNTERS,
} from '@weir/model';
import { type AuthorizationScope, isNamespaceVisible, visibleTenants } from '../access/authorization-scope.ts';

/** `items` of `weir usage -o json`. */
export interface UsageItem extends Counters {
  readonly tenant: string;
  readonly month: UsagePeriod;
  /** Bytes a month, received and sent together; null: unlimited. */
  readonly trafficPerMonth: number | null;
  readonly services: readonly ServiceUsageItem[];
}

export interface ServiceUsageItem extends Counters {
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
  month: UsagePeriod,
): readonly UsageItem[] {
  const known = new Map(tenants.map((tenant) => [tenant.name, tenant]));
  const byTenant = Map.groupBy(rows, (row) => row.tenant);
  const names = [...new Set([...known.keys(), ...byTenant.keys()])].sort();
  return names.map((tenant) => {
    const services = serviceUsageFor(byTenant.get(tenant) ?? []);
    return {
      tenant,
      month,
      ...sumCounters(services),
      trafficPerMonth: known.get(tenant)?.limits.trafficPerMonth ?? null,
      services,
    };
  });
}

function serviceUsageFor(rows: readonly UsageRow[]): ServiceUsageItem[] {
  const byName = Map.groupBy(rows, (row) => `${row.namespace}/${row.name}`);
  const services = [...byName.values()].flatMap((same) => {
    const first = same[0];
    return first === undefined ? [] : [{ namespace: first.namespace, name: first.name, ...sumRows(same) }];
  });
  return services.sort((a, b) => compareText(a.namespace, b.namespace) || compareText(a.name, b.name));
}

function sumRows(rows: readonly UsageRow[]): Counters {
  return rows.reduce((total, row) => addCounters(total, row.counters), ZERO_COUNTERS);
}

function sumCounters(services: readonly Counters[]): Counters {
  return services.reduce<Counters>((total, each) => addCounters(total, each), ZERO_COUNTERS);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * What somebody sees of it: the Services of their namespaces, under the total of their tenant. What their namespaces used under another
 * tenant, whose they were, stands under its name as what it is, without that tenant's total.
 */
export function visibleUsage(
  sight: AuthorizationScope,
  table: RoutingTable,
  items: readonly UsageItem[],
): readonly UsageItem[] {
  if (sight.kind === 'all') return items;
  const tenants = visibleTenants(sight, table);
  return items.flatMap((item) => {
    const services = item.services.filter(({ namespace }) => isNamespaceVisible(sight, namespace));
    if (tenants?.has(item.tenant)) return [{ ...item, services }];
    if (services.length === 0) return [];
    const { receivedBytes, sentBytes, connections, requests } = services.reduce(addCounters, ZERO_COUNTERS);
    return [{ ...item, receivedBytes, sentBytes, connections, requests, trafficPerMonth: null, services }];
  });
}
