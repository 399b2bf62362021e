import type { UsageRow } from '@weir/model/data-plane';
import type { UsageBase } from './contract.ts';

export function byServiceAndTenant(a: UsageRow, b: UsageRow): number {
  return compare(a.service, b.service) || compare(a.tenant, b.tenant);
}

export function byLifeAndSlot(a: UsageBase, b: UsageBase): number {
  return compare(a.node, b.node) || a.life - b.life || compare(a.service, b.service) || compare(a.tenant, b.tenant);
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
