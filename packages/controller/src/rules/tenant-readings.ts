import {
  addCounters,
  type Counters,
  entriesOf,
  type LedgerReading,
  minuteOf,
  monthOf,
  periodsOf,
  type RoutingTable,
  reportingProxies,
  type Tenant,
  type UsagePeriod,
  type UsageRow,
  ZERO_COUNTERS,
} from '@weir/model';
import type { Clock } from '@weir/runtime';
import type { Store } from '@weir/store';
import { forEachConcurrently } from '../kubernetes/concurrent-calls.ts';

export interface TenantReading {
  readonly ledger: LedgerReading;
  /** Bytes of this month. */
  readonly trafficThisMonth: number;
}

export interface ReadTenantsOptions {
  readonly table: RoutingTable;
  readonly store: Pick<Store, 'usage' | 'heartbeats'>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const MAX_CONCURRENT_READS = 16;

/**
 * Reads the usage of tenants. Leaves out tenants of which the ledger may lack usage, because a proxy that serves the tenant has not
 * reported lately. Rejects if the store is unreachable.
 */
export async function readTenants(
  tenants: readonly Tenant[],
  { table, store, clock, signal }: ReadTenantsOptions,
): Promise<ReadonlyMap<string, TenantReading>> {
  const readings = new Map<string, TenantReading>();
  const heartbeats = await store.heartbeats.list();
  const nodes = nodesByTenant(table);
  await forEachConcurrently(tenants, { concurrency: MAX_CONCURRENT_READS, signal }, async ({ name, rules = [] }) => {
    const proxies = reportingProxies(heartbeats, nodes.get(name) ?? new Set());
    if (proxies === undefined) return;
    const minute = minuteOf(clock.now());
    const at = clock.monotonic();
    const needsMonth = rules.some(({ metric }) => metric === 'trafficPerMonth');
    const needsRates = rules.some(({ metric }) => metric !== 'trafficPerMonth');
    const usageIn = async (period: UsagePeriod): Promise<Counters> => sumOf(await store.usage.rows(period, name));
    const minutes = needsRates ? [minute - 1, minute] : [];
    const [month = ZERO_COUNTERS, ...usages] = await Promise.all([
      needsMonth ? usageIn(monthOf(clock.now())) : ZERO_COUNTERS,
      ...minutes.map((each) => usageIn(periodsOf(each).minute)),
    ]);
    readings.set(name, {
      ledger: { at, proxies, minutes: new Map(minutes.map((each, index) => [each, usages[index] ?? ZERO_COUNTERS])) },
      trafficThisMonth: month.receivedBytes + month.sentBytes,
    });
  });
  return readings;
}

function nodesByTenant(table: RoutingTable): ReadonlyMap<string, ReadonlySet<string>> {
  const byTenant = new Map<string, Set<string>>();
  for (const { tenant, nodes } of entriesOf(table, 'service')) {
    if (tenant === null) continue;
    const own = byTenant.get(tenant) ?? new Set();
    for (const node of nodes) own.add(node);
    byTenant.set(tenant, own);
  }
  return byTenant;
}

function sumOf(rows: readonly UsageRow[]): Counters {
  return rows.reduce((sum, { counters }) => addCounters(sum, counters), ZERO_COUNTERS);
}
