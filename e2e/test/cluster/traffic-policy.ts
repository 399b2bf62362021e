import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { NodeFleet } from '../../src/cluster/node-fleet.ts';
import { waitForProbeResult, waitUntilServed } from '../../src/cluster/probe.ts';
import { echoPods, echoService, namespaceManifest } from '../../src/manifests.ts';
import { addressesIn, conditionIn, waitForStatus } from '../../src/service-status.ts';
import { steadyConnections } from '../../src/steady-load.ts';

const namespace = 'local';
const path = `${namespace}/echo`;
const port = 7500;

export function trafficPolicy(fleet: () => NodeFleet): void {
  describe('externalTrafficPolicy: Local', () => {
    before(async () => {
      const { apply } = fleet();
      await apply(namespaceManifest(namespace));
      // Starts only one pod, so that one of the two nodes has no local endpoint.
      await apply(echoPods({ namespace, replicas: 1 }), echoService({ namespace, ports: [{ name: 'tcp', port }] }));
      await waitUntilServed(fleet(), path);
      await waitForProbeResult(fleet(), { port }, 'answered');
    });

    test('degrades the Service, which is still served at every address', async () => {
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

    test('clears the condition when it is removed', async () => {
      await fleet().patchServiceSpec(path, { externalTrafficPolicy: 'Cluster' });
      await waitUntilServed(fleet(), path);
      await waitForProbeResult(fleet(), { port }, 'answered');
    });
  });
}
