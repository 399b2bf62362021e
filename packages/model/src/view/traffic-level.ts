// Monthly traffic limits. Only the ledger knows how much a tenant has used, so the conditions are added to finished views.
import type { TenantLimits } from '../policy.ts';
import type { TenantEntry } from '../table/entry.ts';
import { policyText } from '../translate/tenancy.ts';
import { startOfNextMonth, timestampOf } from '../usage/period.ts';
import type { UsageRow } from '../usage/report.ts';

/** How much of `trafficPerMonth` a tenant has used. Each level is reported once a month. */
export type TrafficLevel = 'below' | '80%' | '100%';

const HIGH_TRAFFIC_SHARE = 0.8;

/** Returns the level of each tenant that has a limit `trafficPerMonth`. `rows` is the usage of the current month. */
export function trafficLevels(
  tenants: readonly Pick<TenantEntry, 'name' | 'limits'>[],
  rows: readonly UsageRow[],
): ReadonlyMap<string, TrafficLevel> {
  const used = new Map<string, number>();
  for (const { tenant, counters } of rows)
    used.set(tenant, (used.get(tenant) ?? 0) + counters.receivedBytes + counters.sentBytes);
  const limited = tenants.filter(({ limits }) => limits.trafficPerMonth !== undefined);
  return new Map(limited.map(({ name, limits }) => [name, trafficLevelOf(limits, used.get(name) ?? 0)]));
}

/** Returns the level of a tenant that has received and sent `bytes` this month. */
export function trafficLevelOf({ trafficPerMonth: limit }: TenantLimits, bytes: number): TrafficLevel {
  if (limit === undefined) return 'below';
  if (bytes >= limit) return '100%';
  return bytes >= limit * HIGH_TRAFFIC_SHARE ? '80%' : 'below';
}

/**
 * Returns the message for each tenant that has reached 80 % or 100 % of its traffic of this month, by name of the tenant. `now` is in
 * milliseconds since the epoch.
 */
export function trafficMessages(
  tenants: readonly Pick<TenantEntry, 'name' | 'policy' | 'limits'>[],
  levels: ReadonlyMap<string, TrafficLevel>,
  now: number,
): ReadonlyMap<string, string> {
  const messages = new Map<string, string>();
  for (const tenant of tenants) {
    const level = levels.get(tenant.name) ?? 'below';
    if (level !== 'below') messages.set(tenant.name, trafficMessage(tenant, level, now));
  }
  return messages;
}

/**
 * Returns the message for a tenant that has reached a level. The message has the bytes of the level and not the current usage, because the
 * usage changes every few seconds, and each change would write the status of every Service of the tenant.
 */
export function trafficMessage(
  { name, policy, limits }: Pick<TenantEntry, 'name' | 'policy' | 'limits'>,
  level: Exclude<TrafficLevel, 'below'>,
  now: number,
): string {
  const limit = limits.trafficPerMonth ?? 0;
  const reached =
    level === '100%'
      ? `has used up its trafficPerMonth of ${limit} bytes (100 %)`
      : `has used at least ${Math.ceil(limit * HIGH_TRAFFIC_SHARE)} bytes (80 %) of its trafficPerMonth of ${limit} bytes`;
  return `tenant "${name}" ${reached}; its Services are still served, unless a rule of the policy acts; the count starts again at ${timestampOf(startOfNextMonth(now))}; ask for a higher limit in ${policyText(policy)}`;
}
