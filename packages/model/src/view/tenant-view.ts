import type { TenantLimits } from '../policy.ts';
import { entriesOf } from '../table/table.ts';
import { addCounters, type Counters, ZERO_COUNTERS } from '../usage/counters.ts';
import type { UsageRow } from '../usage/report.ts';
import type { FleetState } from './fleet.ts';
import { serviceViewsFor } from './fleet-views.ts';
import type { ServiceState, ServiceView } from './service-view.ts';

/** A tenant with what it may have, what it has, and what it used this month. */
export interface TenantView {
  readonly name: string;
  /** The TenantPolicy that covers it; null: the fleet's default. */
  readonly policy: string | null;
  readonly namespaces: readonly string[];
  readonly limits: TenantLimits;
  readonly used: { readonly services: number; readonly ports: number; readonly trafficThisMonth: number };
  readonly services: Readonly<Record<ServiceState, number>>;
  readonly month: Counters;
}

/** The tenants of the table, and those that the ledger still knows, sorted by name. `rows` is the present month. */
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
