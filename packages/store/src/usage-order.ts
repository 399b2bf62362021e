import type { UsageRow } from '@weir/model';

export function byServiceAndTenant(a: UsageRow, b: UsageRow): number {
  if (a.service !== b.service) return a.service < b.service ? -1 : 1;
  return a.tenant < b.tenant ? -1 : 1;
}
