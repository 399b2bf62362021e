import type { Journal, UsageReport } from '@weir/model';

/**
 * All that the ledger has acknowledged of a life, once more: repeated for a while by the next life, because a failover of
 * the store may have lost what it had acknowledged. Undefined when there is nothing.
 */
export function lastReportOf(
  journal: Journal,
  { node, life, minute }: { readonly node: string; readonly life: number; readonly minute: number },
): UsageReport | undefined {
  const slots = [...journal.slots.values()].map(({ service, tenant, namespace, name, acknowledged }) => ({
    service,
    tenant,
    namespace,
    name,
    points: [{ minute, counters: acknowledged }],
  }));
  return slots.length === 0 ? undefined : { node, life, slots };
}
