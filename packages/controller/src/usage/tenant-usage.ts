import {
  addCounters,
  type Counters,
  entriesOf,
  monthOf,
  type RoutingTable,
  type TenantEntry,
  type TenantLimits,
  trafficExhaustedMessage,
  type UsagePeriod,
  type UsageRow,
  ZERO_COUNTERS,
} from '@weir/model';
import type { UsageSeed } from '@weir/store';

// TenantUsage: what a namespace used, for its tenant to read, and for the ledger to be restored from when Redis lost it.
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

/** How much of its month a tenant has used, in the steps that somebody is told of. */
export type TrafficLevel = 'below' | '80%' | '100%';

/** The level of each tenant that has a `trafficPerMonth`. `rows` is the present month. */
export function trafficLevels(table: RoutingTable, rows: readonly UsageRow[]): ReadonlyMap<string, TrafficLevel> {
  const used = new Map<string, Counters>();
  for (const row of rows) used.set(row.tenant, addCounters(used.get(row.tenant) ?? ZERO_COUNTERS, row.counters));
  const levels = new Map<string, TrafficLevel>();
  for (const { name, limits } of entriesOf(table, 'tenant')) {
    const limit = limits.trafficPerMonth;
    if (limit === undefined) continue;
    const { receivedBytes, sentBytes } = used.get(name) ?? ZERO_COUNTERS;
    const bytes = receivedBytes + sentBytes;
    levels.set(name, bytes >= limit ? '100%' : bytes >= limit * 0.8 ? '80%' : 'below');
  }
  return levels;
}

/** Tenants that came to 80 % or 100 % of their month since `before`. */
export function tenantsThatReachedLevel(
  before: ReadonlyMap<string, TrafficLevel>,
  levels: ReadonlyMap<string, TrafficLevel>,
): ReadonlySet<string> {
  const crossed = [...levels].filter(([name, level]) => level !== 'below' && before.get(name) !== level);
  return new Set(crossed.map(([name]) => name));
}

/** What to say to the tenants that have used up their month, by tenant. */
export function exhaustedMessages(
  table: RoutingTable,
  levels: ReadonlyMap<string, TrafficLevel>,
): ReadonlyMap<string, string> {
  const exhausted = entriesOf(table, 'tenant').filter(({ name }) => levels.get(name) === '100%');
  return new Map(exhausted.map((tenant) => [tenant.name, trafficExhaustedMessage(tenant)]));
}

/** The month of `now` (milliseconds since the epoch) and the one before, in UTC. */
export function recentMonths(now: number): readonly [present: UsagePeriod, last: UsagePeriod] {
  const present = monthOf(now);
  const [year = 0, month = 0] = present.split('-').map(Number);
  const last = month === 1 ? `${year - 1}-12` : `${year}-${String(month - 1).padStart(2, '0')}`;
  return [present, last];
}

/** Where usage outlives the store. A directory has none: there the store has a state directory of its own. */
export interface UsageArchive {
  /** All that is kept. Rejects when that cannot be known now. */
  read(): Promise<readonly TenantUsage[]>;
  /** Puts it in place of what is kept of its namespace. Rejects when the archive is away. */
  write(usage: TenantUsage): Promise<ArchiveOutcome>;
  /** Forgets a namespace. */
  remove(namespace: string): Promise<void>;
}

export type ArchiveOutcome =
  | { readonly kind: 'written' }
  /** The namespace is gone or going, and with it who would read this. */
  | { readonly kind: 'left-out' }
  /** Somebody has to put it right: then it can be written. */
  | { readonly kind: 'refused'; readonly reason: string };
