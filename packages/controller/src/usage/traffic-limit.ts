import {
  addCounters,
  type Counters,
  entriesOf,
  type RoutingTable,
  trafficExhaustedMessage,
  type UsageRow,
  ZERO_COUNTERS,
} from '@weir/model';

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
