// The tenant whose clients never rest: whatever becomes of the fleet, none of them may notice.
import assert from 'node:assert/strict';
import { connectClient } from '@weir/testkit';
import { NODES, type NodeName, nodeAddress } from '../addresses.ts';
import type { Fleet } from '../fleet.ts';
import { loadBalancer, namespaceManifest } from '../manifests.ts';
import type { Pods } from '../pods.ts';
import { waitForAddresses } from '../service-status.ts';
import { type SteadyConnections, steadyConnections } from '../steady-load.ts';
import { sumTotals, type TrafficTotals } from './traffic-totals.ts';

const ADDRESSES = NODES.map(nodeAddress);
const PORT = 3001;
const POD_NAME = 'shop-1';

export interface SteadyTenant {
  /** They connect again and again, through every node. */
  readonly clients: SteadyConnections;
  /** One that is connected through a node, and stays. */
  openConnection(node: NodeName): Promise<HeldConnection>;
  /** Ends the clients, and returns what all of them have counted. */
  close(): Promise<TrafficTotals>;
}

export interface HeldConnection {
  /** Is answered, and ends. */
  finish(): Promise<void>;
}

export async function startSteadyTenant(fleet: Fleet, pods: Pods): Promise<SteadyTenant> {
  await fleet.cluster.apply(
    namespaceManifest('shop'),
    loadBalancer('shop/web', { ports: [{ port: PORT, targetPort: 'main' }] }),
  );
  await pods.echoWithName({ namespace: 'shop', name: POD_NAME, labels: { app: 'web' }, number: 1, port: 8080 });
  await waitForAddresses(fleet.cluster, 'shop/web', ADDRESSES);
  const clients = steadyConnections({ hosts: ADDRESSES, port: PORT, clients: 6 });
  const left: TrafficTotals[] = [];
  return {
    clients,
    async openConnection(node) {
      const client = await connectClient({ host: nodeAddress(node), port: PORT });
      assert.equal(String(await client.take(/\n/)), `${POD_NAME}\n`);
      return {
        async finish() {
          await client.send('still here');
          assert.equal(String(await client.take('still here'.length)), 'still here');
          await client.end();
          assert.deepEqual(await client.ended, { kind: 'end' });
          left.push({ sent: client.sent, received: client.received, connections: 1 });
        },
      };
    },
    async close() {
      await clients.stop();
      const { completed: connections } = clients;
      return sumTotals([
        ...left,
        { sent: 4 * connections, received: (`${POD_NAME}\n`.length + 4) * connections, connections },
      ]);
    },
  };
}
