// Keeps a TenantUsage within its maximum size. What does not fit is summed up, so that the totals of the tenant stay the same: small
// Services share one row per tenant and month, and bases share one base per tenant and incarnation (see `UsageBase`).
import {
  addCounters,
  type Counters,
  countersFrom,
  counterValues,
  namespaceOfOtherServices,
  OTHER_SERVICES_NAME,
  otherServicesUid,
  ZERO_COUNTERS,
} from '@weir/model';
import type { IncarnationUsage, ServiceUsageEntry, TenantUsage, TenantUsageStatus } from './tenant-usage.ts';

/** The maximum size of a TenantUsage in bytes of JSON. etcd refuses objects of 1.5 MiB. */
export const MAX_TENANT_USAGE_BYTES: number = 256 * 1024;
/** Reserved for metadata, the tenant's total, and shared rows and bases. */
const RESERVED_BYTES = 32 * 1024;
const MAX_ROW_BYTES = 96 * 1024;

/**
 * Returns the usage with at most `MAX_TENANT_USAGE_BYTES`. Keeps the rows of the Services with the most bytes. Keeps the bases of
 * deleted Services before other bases, because a proxy may never report these Services again, and a shared base would then be
 * subtracted from the usage of other Services. `existing` has the uids of all Services that exist.
 */
export function limitSize({ namespace, status }: TenantUsage, existing: ReadonlySet<string>): TenantUsage {
  const limited: TenantUsage = { namespace, status };
  if (bytesOf(limited) <= MAX_TENANT_USAGE_BYTES - RESERVED_BYTES) return limited;
  const months = limitRows(namespace, status.months);
  const maxBytes = MAX_TENANT_USAGE_BYTES - RESERVED_BYTES - bytesOf(months);
  return {
    namespace,
    status: { ...status, months, lives: limitBases(status.lives, { namespace, existing, maxBytes }) },
  };
}

function limitRows(namespace: string, months: TenantUsageStatus['months']): TenantUsageStatus['months'] {
  const largestFirst = months
    .flatMap(({ month, services }) => services.map((row) => ({ month, row })))
    .sort((a, b) => trafficOf(b.row) - trafficOf(a.row));
  const kept = new Set(takeWithin(largestFirst, MAX_ROW_BYTES, ({ row }) => row).map(({ row }) => row));
  return months.map(({ month, services }) => {
    const shared = new Map<string, ServiceUsageEntry>();
    for (const row of services) {
      if (kept.has(row)) continue;
      const { tenant } = row;
      const sum = addCounters(shared.get(tenant) ?? ZERO_COUNTERS, row);
      shared.set(tenant, { uid: otherServicesUid(namespace), name: OTHER_SERVICES_NAME, tenant, ...sum });
    }
    return { month, services: [...services.filter((row) => kept.has(row)), ...shared.values()] };
  });
}

function limitBases(
  bases: readonly IncarnationUsage[],
  { namespace, existing, maxBytes }: { namespace: string; existing: ReadonlySet<string>; maxBytes: number },
): readonly IncarnationUsage[] {
  const keyOf = ({ tenant, node, life }: IncarnationUsage): string => `${life}/${node}/${tenant}`;
  const sharedFor = ({ tenant, node, life }: IncarnationUsage, sum: Counters): IncarnationUsage => ({
    uid: otherServicesUid(namespace),
    tenant,
    node,
    life,
    ...sum,
  });
  const largest = countersFrom(counterValues(ZERO_COUNTERS).map(() => Number.MAX_SAFE_INTEGER));
  const worstCase = new Map(bases.map((base) => [keyOf(base), sharedFor(base, largest)]));
  const isGone = ({ uid }: IncarnationUsage): number => Number(!existing.has(uid));
  const inOrder = [...bases].sort((a, b) => isGone(b) - isGone(a) || trafficOf(b) - trafficOf(a));
  const kept = new Set(takeWithin(inOrder, maxBytes - bytesOf([...worstCase.values()]), (base) => base));
  const shared = new Map<string, IncarnationUsage>();
  for (const base of bases) {
    if (kept.has(base)) continue;
    shared.set(keyOf(base), sharedFor(base, addCounters(shared.get(keyOf(base)) ?? ZERO_COUNTERS, base)));
  }
  return [...bases.filter((base) => kept.has(base)), ...shared.values()];
}

/**
 * Returns the first items that take at most `maxBytes`. Leaves out the entries of other Services (`otherServicesUid`), because the caller
 * adds further entries to them.
 */
function takeWithin<T>(items: readonly T[], maxBytes: number, entryOf: (item: T) => { readonly uid: string }): T[] {
  const taken: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const entry = entryOf(item);
    if (namespaceOfOtherServices(entry.uid) !== undefined) continue;
    bytes += bytesOf(entry) + 1;
    if (bytes > maxBytes) break;
    taken.push(item);
  }
  return taken;
}

function trafficOf({ receivedBytes, sentBytes }: Counters): number {
  return receivedBytes + sentBytes;
}

export function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
