import type { TenantLimits } from '../policy.ts';
import type { RuleRecord } from '../rules/rule.ts';
import { ruleEventText } from '../rules/rule-text.ts';
import type { TenantEntry } from '../table/entry.ts';
import { entriesOf } from '../table/table.ts';
import { addCounters, type Counters, type UsageRow, ZERO_COUNTERS } from '../usage/report.ts';
import type { FleetState } from './fleet-state.ts';
import type { ServiceState, ServiceView } from './service-view.ts';
import { serviceViewsFor } from './service-views.ts';

/** What a rule does to a tenant. Times are in milliseconds since the epoch. */
export interface RuleView extends Pick<RuleRecord, 'rule' | 'action' | 'since' | 'until'> {
  readonly message: string;
}

/** A tenant with its limits, its Services and ports, and its traffic of this month. */
export interface TenantView {
  readonly name: string;
  /** Name of the TenantPolicy; null for the fleet's default policy. */
  readonly policy: string | null;
  readonly namespaces: readonly string[];
  readonly limits: TenantLimits;
  /** What rules of the policy do to the tenant now. */
  readonly rules: readonly RuleView[];
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
      rules: entry === undefined ? [] : ruleViewsFor(entry),
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

function ruleViewsFor(tenant: TenantEntry): RuleView[] {
  const acting = (tenant.rules ?? []).filter(({ phase }) => phase === 'acting');
  return acting.map((record) => {
    const { rule, action, since, until } = record;
    return { rule, action, since, until, message: ruleEventText({ kind: 'begin', record }, tenant) };
  });
}

function countStates(views: readonly ServiceView[]): Record<ServiceState, number> {
  const counts = { Programmed: 0, Pending: 0, Refused: 0, Suspended: 0 };
  for (const view of views) counts[view.state] += 1;
  return counts;
}
