import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import type { NodeFleet } from '../../src/cluster/node-fleet.ts';
import { udpClient, waitForProbeResult, waitUntilServed } from '../../src/cluster/probe.ts';
import { echoPods, echoService, namespaceManifest } from '../../src/manifests.ts';
import { steadyConnections } from '../../src/steady-load.ts';

const namespace = 'rolling';
const port = 7700;
const TCP = { name: 'tcp', port } as const;
const UDP = { name: 'udp', port, protocol: 'UDP' } as const;

export function rollingUpdates(fleet: () => NodeFleet): void {
  describe('a rolling update', () => {
    before(async () => {
      const { apply } = fleet();
      await apply(namespaceManifest(namespace));
      await apply(
        echoPods({ namespace, replicas: 3, preStopSeconds: 2 }),
        echoService({ namespace, ports: [TCP, UDP] }),
      );
      await rolledOut();
      await waitUntilServed(fleet(), `${namespace}/echo`);
      for (const each of [TCP, UDP]) await waitForProbeResult(fleet(), each, 'answered');
    });

    const podsOf = async (where: string): Promise<string[]> => {
      const text = await fleet().cluster.kubectl('get', 'pods', '-n', where, '-o', 'json');
      const { items } = JSON.parse(text) as { items: { metadata: { name: string } }[] };
      return items.map(({ metadata }) => metadata.name);
    };
    const rolledOut = (): Promise<string> =>
      fleet().cluster.kubectl('rollout', 'status', 'deployment/echo', '-n', namespace, '--timeout=120s');

    test('replaces every pod twice without a failed connection', async () => {
      const { kubectl } = fleet().cluster;
      await using clients = steadyConnections({ hosts: fleet().addresses, port, clients: 8 });
      await clients.waitForMore(100);
      for (const _ of ['first', 'second']) {
        await kubectl('rollout', 'restart', 'deployment/echo', '-n', namespace);
        await rolledOut();
      }
      await clients.waitForMore(100);
      await clients.stop();
      assert.deepEqual(clients.failures, []);
      assert.ok(clients.pods.size >= 9, `${clients.pods.size} of 9 pods responded`);
    });

    test('moves a UDP client with a fixed port to the new pods', async () => {
      const [host = ''] = fleet().addresses;
      await using client = await udpClient({ host, port });
      const old = await podsOf(namespace);
      assert.ok(old.includes((await client.requestPodName()) ?? ''));
      await fleet().cluster.kubectl('rollout', 'restart', 'deployment/echo', '-n', namespace);
      await rolledOut();
      await eventually(async () => {
        const pod = await client.requestPodName();
        assert.ok(pod !== undefined && !old.includes(pod), `${pod} responds`);
      });
    });
  });
}
