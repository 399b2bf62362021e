import { NODES, nodeAddress } from '../addresses.ts';
import type { Fleet } from '../fleet.ts';
import { addressesIn, statusWhen } from '../kubernetes-objects.ts';

/** One for each node of the fleet, in their order. */
export const ADDRESSES: readonly string[] = NODES.map(nodeAddress);

export async function apply({ cluster }: Fleet, ...items: readonly object[]): Promise<void> {
  await cluster.kubectl('apply', '-f', '-', { stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) });
}

/** Every node has confirmed it. */
export async function servedEverywhere({ cluster }: Fleet, path: string): Promise<void> {
  await statusWhen(cluster, path, (now) => addressesIn(now).join() === ADDRESSES.join());
}
