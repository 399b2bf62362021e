import {
  addCounters,
  type Counters,
  entriesOf,
  monthOf,
  namespaceOfOtherServices,
  type RoutingTable,
  type TenantEntry,
  type TenantLimits,
  type TrafficLevel,
  type UsagePeriod,
  type UsageRow,
  ZERO_COUNTERS,
} from '@weir/model';
import type { UsageSeed } from '@weir/store';

/** The usage of a namespace, for its tenant to read. If Redis loses its data, the ledger is restored from the usages of all namespaces. */
export interface TenantUsage {
  readonly namespace: string;
  readonly status: TenantUsageStatus;
}

export interface TenantUsageStatus {
  readonly updatedAt: string;
  /** True if running proxies have not reported all of their counts since the ledger was restored; else absent. */
  readonly partial?: true;
  /** This month's usage of the tenant in all its namespaces; absent if the namespace has no tenant. */
  readonly tenant?: TenantUsageTotal;
  readonly months: readonly { readonly month: UsagePeriod; readonly services: readonly ServiceUsageEntry[] }[];
  /** How much of each proxy incarnation's counters is included in `months`. */
  readonly lives: readonly IncarnationUsage[];
}

export interface TenantUsageTotal extends Counters {
  readonly name: string;
  readonly month: UsagePeriod;
  readonly services: number;
  readonly ports: number;
  /**
   * Absent if the tenant has no limits, because an empty object is refused: server-side apply turns an object whose fields are all
   * removed into null, and the schema refuses null.
   */
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
 * Returns a TenantUsage for each namespace that has Services, or that has usage in the months of `ledger`. The first month of
 * `ledger` is the current month. `now` is in milliseconds since the epoch.
 */
export function tenantUsagesFor(
  ledger: UsageSeed,
  table: RoutingTable,
  { now, isPartial }: { readonly now: number; readonly isPartial: boolean },
): readonly TenantUsage[] {
  const namespaceByService = namespacesByService(ledger, table);
  const namespaces = [...new Set(namespaceByService.values())].sort();
  const totals = totalsFor(ledger, table);
  const tenants = new Map(
    entriesOf(table, 'tenant').flatMap((tenant) =>
      tenant.namespaces.map((namespace) => [namespace, tenant.name] as const),
    ),
  );
  const basesByNamespace = Map.groupBy(
    ledger.bases,
    ({ service }) => namespaceOfOtherServices(service) ?? namespaceByService.get(service) ?? '',
  );
  const months = ledger.months.map(({ month, rows }) => ({
    month,
    rowsByNamespace: Map.groupBy(rows, (row) => row.namespace),
  }));
  const updatedAt = new Date(now).toISOString();
  return namespaces.map((namespace) => {
    const tenant = totals.get(tenants.get(namespace) ?? '');
    const lives = (basesByNamespace.get(namespace) ?? []).map(({ service, tenant: owner, node, life, counters }) => ({
      uid: service,
      tenant: owner,
      node,
      life,
      ...countersOf(counters),
    }));
    const usageByMonth = months.map(({ month, rowsByNamespace }) => ({
      month,
      services: (rowsByNamespace.get(namespace) ?? []).map(serviceUsageEntry),
    }));
    const head = { updatedAt, ...(isPartial && { partial: true as const }), ...(tenant && { tenant }) };
    return { namespace, status: { ...head, months: usageByMonth, lives } };
  });
}

function serviceUsageEntry({ service: uid, name, tenant, counters }: UsageRow): ServiceUsageEntry {
  return { uid, name, tenant, ...countersOf(counters) };
}

/**
 * Returns the namespace of each Service, by UID. A deleted Service with usage is only in the rows of `months`. A Service without usage in
 * these months is only in the table, although the `bases` of the ledger may contain the Service.
 */
function namespacesByService({ months }: UsageSeed, table: RoutingTable): ReadonlyMap<string, string> {
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
    ...countersOf(counters.get(name) ?? ZERO_COUNTERS),
    services: used.services,
    ports: used.ports,
    ...(Object.keys(limits).length > 0 && { limits }),
  });
  return new Map(entriesOf(table, 'tenant').map((tenant) => [tenant.name, total(tenant)]));
}

/**
 * Returns the contents of the ledger that the usages have recorded. The months of a namespace match its bases, because one read of the
 * ledger returned both.
 */
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

/** Returns the counters that a TenantUsage has. Refusals are left out, because they would take most of the space of a TenantUsage. */
function countersOf({ receivedBytes, sentBytes, connections, requests, requestsByCodeClass }: Counters): Counters {
  return { receivedBytes, sentBytes, connections, requests, ...(requestsByCodeClass && { requestsByCodeClass }) };
}

/** Returns the tenants that have reached 80 % or 100 % of their monthly traffic since `before`. */
export function tenantsThatReachedLevel(
  before: ReadonlyMap<string, TrafficLevel>,
  levels: ReadonlyMap<string, TrafficLevel>,
): ReadonlySet<string> {
  const crossed = [...levels].filter(([name, level]) => level !== 'below' && before.get(name) !== level);
  return new Set(crossed.map(([name]) => name));
}

/** Returns the month of `now` (milliseconds since the epoch) and the month before, in UTC. */
export function recentMonths(now: number): readonly [present: UsagePeriod, last: UsagePeriod] {
  const present = monthOf(now);
  const [year = 0, month = 0] = present.split('-').map(Number);
  const last = month === 1 ? `${year - 1}-12` : `${year}-${String(month - 1).padStart(2, '0')}`;
  return [present, last];
}

/**
 * Keeps usage outside of the store, in case the store is wiped. A fleet that reads manifest files has no archive, because its store
 * is a state directory on disk.
 */
export interface UsageArchive {
  /** Returns all usages of the fleet. Rejects if they cannot be read now. */
  read(): Promise<readonly TenantUsage[]>;
  /** Replaces the usage of the namespace. Rejects if the archive is unreachable. */
  write(usage: TenantUsage): Promise<ArchiveOutcome>;
  /** Removes the usage of the namespace. */
  remove(namespace: string): Promise<void>;
}

export type ArchiveOutcome =
  | { readonly kind: 'written' }
  /** The namespace is deleted or being deleted. */
  | { readonly kind: 'namespace-gone' }
  /** The write fails until a person removes the cause. */
  | { readonly kind: 'refused'; readonly reason: string };
