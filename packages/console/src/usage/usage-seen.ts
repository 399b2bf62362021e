import { addCounters, type RoutingTable, ZERO_COUNTERS } from '@weir/model';
import { type AuthorizationScope, isNamespaceVisible, visibleTenants } from '../access/sight.ts';
import type { UsageItem } from './usage-items.ts';

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
