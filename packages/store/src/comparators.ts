import type { Heartbeat, UsageRow } from '@weir/model/data-plane';
import type { UsageBase } from './contract.ts';

export function compareUsageRows(a: UsageRow, b: UsageRow): number {
  return compareText(a.service, b.service) || compareText(a.tenant, b.tenant);
}

export function compareUsageBases(a: UsageBase, b: UsageBase): number {
  return (
    compareText(a.node, b.node) ||
    a.life - b.life ||
    compareText(a.service, b.service) ||
    compareText(a.tenant, b.tenant)
  );
}

function compareText(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

export function compareHeartbeats(a: Heartbeat, b: Heartbeat): number {
  if (a.node !== b.node) return a.node < b.node ? -1 : 1;
  return a.life - b.life;
}
