// The tenant whose clients never rest: whatever becomes of the fleet, none of them may notice.
import assert from 'node:assert/strict';
import { connectRaw } from '@weir/testkit';
import { NODES, type NodeName, nodeAddress } from '../addresses.ts';
import { type SteadyConnections, steadyConnections } from '../cluster/steady-connections.ts';
import type { Fleet } from '../fleet.ts';
import { publishedWhen } from '../kubernetes-objects.ts';
import { loadBalancer, namespace } from '../manifests.ts';
import type { Pods } from '../pods.ts';
import { type Account, sum } from './account.ts';

const ADDRESSES = NODES.map(nodeAddress);
const PORT = 3001;
const POD = 'shop-1';

export interface Shop {
  /** They connect again and again, through every node. */
  readonly clients: SteadyConnections;
  /** One that is connected through a node, and stays. */
  hold(node: NodeName): Promise<Held>;
  /** Ends the clients, and returns what all of them have counted. */
  close(): Promise<Account>;
}

export interface Held {
  /** Is answered, and ends. */
  leave(): Promise<void>;
}

export async function openShop(fleet: Fleet, pods: Pods): Promise<Shop> {
  await fleet.cluster.apply(
    namespace('shop'),
    loadBalancer('shop/web', { ports: [{ port: PORT, targetPort: 'main' }] }),
  );
  await pods.named({ namespace: 'shop', name: POD, labels: { app: 'web' }, number: 1, port: 8080 });
  await publishedWhen(fleet.cluster, 'shop/web', ADDRESSES);
  const clients = steadyConnections({ hosts: ADDRESSES, port: PORT, clients: 6 });
  const left: Account[] = [];
  return {
    clients,
    async hold(node) {
      const client = await connectRaw({ host: nodeAddress(node), port: PORT });
      assert.equal(String(await client.take(/\n/)), `${POD}\n`);
      return {
        async leave() {
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
      const { made: connections } = clients;
      return sum([...left, { sent: 4 * connections, received: (`${POD}\n`.length + 4) * connections, connections }]);
    },
  };
}
