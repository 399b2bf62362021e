import type { Journal, UsageReport } from '@weir/model/data-plane';

/**
 * Everything that a life has counted, also what the ledger has acknowledged: said again after the store was lost for a
 * moment, because a failover may have lost what it had acknowledged. Undefined when there is nothing.
 */
export function fullReportFor(
  journal: Journal,
  { node, life, minute }: { readonly node: string; readonly life: number; readonly minute: number },
): UsageReport | undefined {
  const slots = [...journal.slots.values()].map(({ acknowledged, points, ...slot }) => ({
    ...slot,
    points: points.length > 0 ? points : [{ minute, counters: acknowledged }],
  }));
  return slots.length === 0 ? undefined : { node, life, slots };
}
