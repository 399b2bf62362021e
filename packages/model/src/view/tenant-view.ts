import type { TenantLimits } from '../policy.ts';
import type { TenantEntry } from '../table/entry.ts';
import { entriesOf } from '../table/table.ts';
import { policyText } from '../translate/tenancy.ts';
import { addCounters, type Counters, type UsageRow, ZERO_COUNTERS } from '../usage/report.ts';
import type { FleetState } from './fleet-state.ts';
import type { ServiceState, ServiceView } from './service-view.ts';
import { serviceViewsFor } from './service-views.ts';

/** A tenant with its limits, its Services and ports, and its traffic of this month. */
export interface TenantView {
  readonly name: string;
  /** Name of the TenantPolicy; null for the fleet's default policy. */
  readonly policy: string | null;
  readonly namespaces: readonly string[];
  readonly limits: TenantLimits;
  readonly used: { readonly services: number; readonly ports: number; readonly trafficThisMonth: number };
  readonly services: Readonly<Record<ServiceState, number>>;
  readonly month: Counters;
}

/** Returns the tenants of the table and of the ledger, sorted by name. `rows` holds the usage of the current month. */
export function tenantViewsFor(fleet: FleetState, rows: readonly UsageRow[]): TenantView[] {
  const views = serviceViewsFor(fleet);
  const month = new Map<string, Counters>();
  for (const row of rows) month.set(row.tenant, addCounters(month.get(row.tenant) ?? ZERO_COUNTERS, row.counters));
  const known = new Map(entriesOf(fleet.table, 'tenant').map((entry) => [entry.name, entry]));
  const names = [...new Set([...known.keys(), ...month.keys()])].sort();
  return names.map((name) => {
    const entry = known.get(name);
    const counters = month.get(name) ?? ZERO_COUNTERS;
    return {
      name,
      policy: entry?.policy ?? null,
      namespaces: entry?.namespaces ?? [],
      limits: entry?.limits ?? {},
      used: {
        services: entry?.used.services ?? 0,
        ports: entry?.used.ports ?? 0,
        trafficThisMonth: counters.receivedBytes + counters.sentBytes,
      },
      services: countStates(views.filter((view) => view.tenant === name)),
      month: counters,
    };
  });
}

function countStates(views: readonly ServiceView[]): Record<ServiceState, number> {
  const counts = { Programmed: 0, Pending: 0, Refused: 0, Suspended: 0 };
  for (const view of views) counts[view.state] += 1;
  return counts;
}

// Traffic limits. Only the ledger knows that a tenant has used up its monthly traffic, so the condition is added to finished views.

/**
 * Returns the message for a tenant that has used up its monthly traffic. Omits the current usage, because the usage changes every few
 * seconds, and each change would write the status of every Service of the tenant.
 */
export function trafficExhaustedMessage({
  name,
  policy,
  limits,
}: Pick<TenantEntry, 'name' | 'policy' | 'limits'>): string {
  return `tenant "${name}" has used up its trafficPerMonth of ${limits.trafficPerMonth} bytes; its Services are still served, and the count starts again with the next month (UTC); ask for a higher limit in ${policyText(policy)}`;
}

/** Returns the message for each tenant that has used up its traffic of this month. `rows` holds the usage of the current month. */
export function trafficExhaustedMessages(
  tenants: readonly TenantEntry[],
  rows: readonly UsageRow[],
): ReadonlyMap<string, string> {
  const limited = new Map(
    tenants.flatMap(({ name, limits }) => (limits.trafficPerMonth === undefined ? [] : [[name, 0]])),
  );
  for (const { tenant, counters } of rows) {
    const bytes = limited.get(tenant);
    if (bytes !== undefined) limited.set(tenant, bytes + counters.receivedBytes + counters.sentBytes);
  }
  const exhausted = tenants.filter(
    ({ name, limits }) => (limited.get(name) ?? 0) >= (limits.trafficPerMonth ?? Number.POSITIVE_INFINITY),
  );
  return new Map(exhausted.map((tenant) => [tenant.name, trafficExhaustedMessage(tenant)]));
}
