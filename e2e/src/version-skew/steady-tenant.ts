// A tenant whose clients connect continuously. No client may notice a change of the fleet.
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
  /** Clients that connect repeatedly through every node. */
  readonly clients: SteadyConnections;
  /** Opens a connection through a node. The connection stays open until `finish`. */
  openConnection(node: NodeName): Promise<HeldConnection>;
  /** Stops the clients and returns the traffic that the clients and the held connections have counted. */
  close(): Promise<TrafficTotals>;
}

export interface HeldConnection {
  /** Asserts that the connection still echoes, and then closes the connection. */
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
  const heldTotals: TrafficTotals[] = [];
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
          heldTotals.push({ sent: client.sent, received: client.received, connections: 1 });
        },
      };
    },
    async close() {
      await clients.stop();
      const { completed: connections } = clients;
      return sumTotals([
        ...heldTotals,
        { sent: 4 * connections, received: (`${POD_NAME}\n`.length + 4) * connections, connections },
      ]);
    },
  };
}
