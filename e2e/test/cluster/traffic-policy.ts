import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { NodeFleet } from '../../src/cluster/node-fleet.ts';
import { waitForProbeResult, waitUntilServed } from '../../src/cluster/probe.ts';
import { echoPods, echoService, plainNamespace } from '../../src/manifests.ts';
import { addressesIn, conditionIn, waitForStatus } from '../../src/service-status.ts';
import { steadyConnections } from '../../src/steady-load.ts';

const namespace = 'local';
const path = `${namespace}/echo`;
const port = 7500;

export function trafficPolicy(fleet: () => NodeFleet): void {
  describe('externalTrafficPolicy: Local', () => {
    before(async () => {
      const { apply } = fleet();
      await apply(plainNamespace(namespace));
      // One pod, on one of the two nodes: the other has no endpoint of its own.
      await apply(echoPods({ namespace, replicas: 1 }), echoService({ namespace, ports: [{ name: 'tcp', port }] }));
      await waitUntilServed(fleet(), path);
      await waitForProbeResult(fleet(), { port }, 'answered');
    });

    test('says that pods see the proxy’s address, and is answered at every address, whichever node the pod is on', async () => {
      await using clients = steadyConnections({ hosts: fleet().addresses, port, clients: 4 });
      await fleet().patchServiceSpec(path, { externalTrafficPolicy: 'Local' });
      const status = await waitForStatus(fleet().cluster, path, (now) => conditionIn(now, 'Degraded') !== undefined);
      assert.equal(conditionIn(status, 'Degraded')?.reason, 'SourceAddressNotPreserved');
      assert.match(conditionIn(status, 'Degraded')?.message ?? '', /not of the client.*weir\.dev\/proxy-protocol/);
      assert.equal(conditionIn(status, 'Accepted')?.status, 'True');
      assert.deepEqual(addressesIn(status), fleet().addresses);
      await waitForProbeResult(fleet(), { port }, 'answered');
      await clients.waitForMore(50);
      await clients.stop();
      assert.deepEqual(clients.failures, []);
    });

    test('taken back, is not complained of any more', async () => {
      await fleet().patchServiceSpec(path, { externalTrafficPolicy: 'Cluster' });
      await waitUntilServed(fleet(), path);
      await waitForProbeResult(fleet(), { port }, 'answered');
    });
  });
}
