import { compareText, type Heartbeat, type UsageRow } from '@weir/model/data-plane';
import type { UsageBase } from './contract.ts';

/** Orders usage rows by Service and tenant, as `UsageStore.rows` returns them. */
export function compareUsageRows(a: UsageRow, b: UsageRow): number {
  return compareText(a.service, b.service) || compareText(a.tenant, b.tenant);
}

/** Orders bases by node, incarnation, Service and tenant, as `UsageStore.exportSeed` returns them. */
export function compareUsageBases(a: UsageBase, b: UsageBase): number {
  return (
    compareText(a.node, b.node) ||
    a.life - b.life ||
    compareText(a.service, b.service) ||
    compareText(a.tenant, b.tenant)
  );
}

/** Orders heartbeats by node and incarnation, as `HeartbeatStore.list` returns them. */
export function compareHeartbeats(a: Heartbeat, b: Heartbeat): number {
  return compareText(a.node, b.node) || a.life - b.life;
}
