import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { echoPods, echoService, namespaceObject } from '../../src/cluster/echo-objects.ts';
import { comesTo, servedWell } from '../../src/cluster/expectations.ts';
import type { RealFleet } from '../../src/cluster/real-fleet.ts';
import { steadyConnections } from '../../src/cluster/steady-connections.ts';
import { addressesIn, conditionIn, statusWhen } from '../../src/kubernetes-objects.ts';

const namespace = 'local';
const path = `${namespace}/echo`;
const port = 7500;

export function trafficPolicy(fleet: () => RealFleet): void {
  describe('externalTrafficPolicy: Local', () => {
    before(async () => {
      const { apply } = fleet();
      await apply(namespaceObject(namespace));
      // One pod, on one of the two nodes: the other has no endpoint of its own.
      await apply(echoPods({ namespace, replicas: 1 }), echoService({ namespace, ports: [{ name: 'tcp', port }] }));
      await servedWell(fleet(), path);
      await comesTo(fleet(), { port }, 'answered');
    });

    test('says that pods see the proxy’s address, and is answered at every address, whichever node the pod is on', async () => {
      await using clients = steadyConnections({ hosts: fleet().addresses, port, clients: 4 });
      await fleet().change(path, { externalTrafficPolicy: 'Local' });
      const status = await statusWhen(fleet().cluster, path, (now) => conditionIn(now, 'Degraded') !== undefined);
      assert.equal(conditionIn(status, 'Degraded')?.reason, 'SourceAddressNotPreserved');
      assert.match(conditionIn(status, 'Degraded')?.message ?? '', /not of the client.*weir\.dev\/proxy-protocol/);
      assert.equal(conditionIn(status, 'Accepted')?.status, 'True');
      assert.deepEqual(addressesIn(status), fleet().addresses);
      await comesTo(fleet(), { port }, 'answered');
      await clients.atLeast(50);
      await clients.stop();
      assert.deepEqual(clients.failures, []);
    });

    test('taken back, is not complained of any more', async () => {
      await fleet().change(path, { externalTrafficPolicy: 'Cluster' });
      await servedWell(fleet(), path);
      await comesTo(fleet(), { port }, 'answered');
    });
  });
}
