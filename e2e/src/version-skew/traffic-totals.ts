import assert from 'node:assert/strict';
import { eventually } from '@weir/testkit';
import type { Fleet } from '../fleet.ts';

/** What the clients of a tenant have counted themselves. */
export interface TrafficTotals {
  readonly sent: number;
  readonly received: number;
  readonly connections: number;
}

export function sumTotals(accounts: readonly TrafficTotals[]): TrafficTotals {
  return accounts.reduce(
    (a, b) => ({
      sent: a.sent + b.sent,
      received: a.received + b.received,
      connections: a.connections + b.connections,
    }),
    { sent: 0, received: 0, connections: 0 },
  );
}

/** The ledger has the same, to the byte, soon. */
export async function assertUsage(fleet: Fleet, tenant: string, account: TrafficTotals): Promise<void> {
  await eventually(async () => assert.deepEqual(await usageOf(fleet, tenant), account), {
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
