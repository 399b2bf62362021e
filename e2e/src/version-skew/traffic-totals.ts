import assert from 'node:assert/strict';
import { eventually } from '@weir/testkit';
import type { Fleet } from '../fleet.ts';

/** The traffic of a tenant as its clients have counted it: bytes and connections. */
export interface TrafficTotals {
  readonly sent: number;
  readonly received: number;
  readonly connections: number;
}

export function sumTotals(totals: readonly TrafficTotals[]): TrafficTotals {
  return totals.reduce(
    (a, b) => ({
      sent: a.sent + b.sent,
      received: a.received + b.received,
      connections: a.connections + b.connections,
    }),
    { sent: 0, received: 0, connections: 0 },
  );
}

/** Waits until the tenant's usage in the ledger equals `totals` exactly. */
export async function assertUsage(fleet: Fleet, tenant: string, totals: TrafficTotals): Promise<void> {
  await eventually(async () => assert.deepEqual(await usageOf(fleet, tenant), totals), {
    timeoutMs: 60_000,
    intervalMs: 250,
  });
}

async function usageOf(fleet: Fleet, tenant: string): Promise<TrafficTotals> {
  const { items } = JSON.parse(await fleet.weir('usage', tenant, '-o', 'json')) as {
    items: readonly {
      readonly receivedBytes: number;
      readonly sentBytes: number;
      readonly connections: number;
    }[];
  };
  const [{ receivedBytes, sentBytes, connections } = assert.fail(`${tenant} is not in the ledger`)] = items;
  return { sent: receivedBytes, received: sentBytes, connections };
}
