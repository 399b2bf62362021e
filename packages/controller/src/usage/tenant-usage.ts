// TenantUsage: what a namespace used, for its tenant to read, and for the ledger to be restored from when Redis lost it.
import {
  addCounters,
  type Counters,
  entriesOf,
  type RoutingTable,
  type TenantEntry,
  type TenantLimits,
  type UsagePeriod,
  type UsageRow,
  ZERO_COUNTERS,
} from '@weir/model';
import type { UsageSeed } from '@weir/store';

export interface TenantUsage {
  readonly namespace: string;
  readonly status: TenantUsageStatus;
}

export interface TenantUsageStatus {
  readonly updatedAt: string;
  /** The tenant over all its namespaces, this month; absent while the namespace has none. */
  readonly tenant?: TenantUsageTotal;
  readonly months: readonly { readonly month: UsagePeriod; readonly services: readonly ServiceUsageEntry[] }[];
  /** How far each life of a proxy is counted in `months`. */
  readonly lives: readonly IncarnationUsage[];
}

export interface TenantUsageTotal extends Counters {
  readonly name: string;
  readonly month: UsagePeriod;
  readonly services: number;
  readonly ports: number;
  /** Absent: it has none. Server-side apply leaves null of an empty object whose fields it removes, and the schema refuses that. */
  readonly limits?: TenantLimits;
}

export interface ServiceUsageEntry extends Counters {
  readonly uid: string;
  readonly name: string;
  readonly tenant: string;
}

export interface IncarnationUsage extends Counters {
  readonly uid: string;
  readonly tenant: string;
  readonly node: string;
  readonly life: number;
}

/**
 * One for each namespace that has Services or used anything in the months of `copy`, of which the first is the present one. `now` in
 * milliseconds since the epoch.
 */
export function tenantUsagesFor(copy: UsageSeed, table: RoutingTable, now: number): readonly TenantUsage[] {
  const namespaceOf = namespacesOf(copy, table);
  const namespaces = [...new Set(namespaceOf.values())].sort();
  const totals = totalsFor(copy, table);
  const tenants = new Map(
    entriesOf(table, 'tenant').flatMap((tenant) =>
      tenant.namespaces.map((namespace) => [namespace, tenant.name] as const),
    ),
  );
  const basesOf = Map.groupBy(copy.bases, (base) => namespaceOf.get(base.service) ?? '');
  const months = copy.months.map(({ month, rows }) => ({
    month,
    rowsOf: Map.groupBy(rows, (row) => row.namespace),
  }));
  const updatedAt = new Date(now).toISOString();
  return namespaces.map((namespace) => {
    const tenant = totals.get(tenants.get(namespace) ?? '');
    const lives = (basesOf.get(namespace) ?? []).map(({ service, tenant: owner, node, life, counters }) => ({
      uid: service,
      tenant: owner,
      node,
      life,
      ...counters,
    }));
    const own = months.map(({ month, rowsOf }) => ({
      month,
      services: (rowsOf.get(namespace) ?? []).map(serviceUsageEntry),
    }));
    return { namespace, status: { updatedAt, ...(tenant && { tenant }), months: own, lives } };
  });
}

function serviceUsageEntry({ service: uid, name, tenant, counters }: UsageRow): ServiceUsageEntry {
  return { uid, name, tenant, ...counters };
}

/** By Service UID. A Service may be gone and have used something, or be idle for months and run on the life of a proxy. */
function namespacesOf({ months }: UsageSeed, table: RoutingTable): ReadonlyMap<string, string> {
  const namespaces = new Map(months.flatMap(({ rows }) => rows.map((row) => [row.service, row.namespace] as const)));
  for (const service of entriesOf(table, 'service')) namespaces.set(service.uid, service.namespace);
  return namespaces;
}

function totalsFor({ months }: UsageSeed, table: RoutingTable): ReadonlyMap<string, TenantUsageTotal> {
  const present = months[0];
  const counters = new Map<string, Counters>();
  for (const row of present?.rows ?? [])
    counters.set(row.tenant, addCounters(counters.get(row.tenant) ?? ZERO_COUNTERS, row.counters));
  const total = ({ name, used, limits }: TenantEntry): TenantUsageTotal => ({
    name,
    month: present?.month ?? '',
    ...(counters.get(name) ?? ZERO_COUNTERS),
    services: used.services,
    ports: used.ports,
    ...(Object.keys(limits).length > 0 && { limits }),
  });
  return new Map(entriesOf(table, 'tenant').map((tenant) => [tenant.name, total(tenant)]));
}

/** What the ledger is restored from. Each namespace is right by itself: its totals and lives are of one moment. */
export function seedFor(usages: readonly TenantUsage[]): UsageSeed {
  const months = new Map<UsagePeriod, UsageSeed['months'][number]['rows'][number][]>();
  const bases: UsageSeed['bases'][number][] = [];
  for (const { namespace, status } of usages) {
    for (const { month, services } of status.months) {
      const rows = months.get(month) ?? [];
      for (const usage of services) {
        rows.push({
          service: usage.uid,
          tenant: usage.tenant,
          namespace,
          name: usage.name,
          counters: countersOf(usage),
        });
      }
      months.set(month, rows);
    }
    for (const usage of status.lives) {
      const { uid, tenant, node, life } = usage;
      bases.push({ service: uid, tenant, node, life, counters: countersOf(usage) });
    }
  }
  return { months: [...months].sort().map(([month, rows]) => ({ month, rows })), bases };
}

/** Of two sets the later one of each namespace. */
export function latestOf(a: readonly TenantUsage[], b: readonly TenantUsage[]): readonly TenantUsage[] {
  const latest = new Map<string, TenantUsage>();
  for (const usage of [...a, ...b]) {
    const other = latest.get(usage.namespace);
    if (other === undefined || Date.parse(other.status.updatedAt) < Date.parse(usage.status.updatedAt))
      latest.set(usage.namespace, usage);
  }
  return [...latest.values()];
}

function countersOf({ receivedBytes, sentBytes, connections, requests }: Counters): Counters {
  return { receivedBytes, sentBytes, connections, requests };
}
