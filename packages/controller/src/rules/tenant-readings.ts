import {
  addCounters,
  type Counters,
  entriesOf,
  type LedgerReading,
  minuteOf,
  monthOf,
  type RoutingTable,
  reportingProxies,
  type Tenant,
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
    const minutes = needsRates ? [minute - 1, minute] : [];
    const query = { tenant: name, length: 'minute', from: minute - 1, until: minute + 1 } as const;
    const [rows, points] = await Promise.all([
      needsMonth ? store.usage.rows(monthOf(clock.now()), name) : [],
      // Reads the series of the tenant, because the rows of all its Services would be a long answer every few seconds.
      needsRates ? store.usage.series(query) : [],
    ]);
    const counters = new Map(points.map((point) => [point.minute, point.counters]));
    const month = sumOf(rows);
    readings.set(name, {
      ledger: { at, proxies, minutes: new Map(minutes.map((each) => [each, counters.get(each) ?? ZERO_COUNTERS])) },
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
