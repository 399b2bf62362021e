import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { echoPods, echoService, namespaceObject } from '../../src/cluster/echo-objects.ts';
import { comesTo, servedWell } from '../../src/cluster/expectations.ts';
import type { RealFleet } from '../../src/cluster/real-fleet.ts';
import { steadyConnections } from '../../src/cluster/steady-connections.ts';

const namespace = 'rolling';
const port = 7700;

export function rollingUpdates(fleet: () => RealFleet): void {
  describe('a rolling update', () => {
    before(async () => {
      const { apply } = fleet();
      await apply(namespaceObject(namespace));
      await apply(
        echoPods({ namespace, replicas: 3, lingerSeconds: 2 }),
        echoService({ namespace, ports: [{ name: 'tcp', port }] }),
      );
      await rolledOut();
      await servedWell(fleet(), `${namespace}/echo`);
      await comesTo(fleet(), { port }, 'answered');
    });

    const rolledOut = (): Promise<string> =>
      fleet().cluster.kubectl('rollout', 'status', 'deployment/echo', '-n', namespace, '--timeout=120s');

    test('replaces every pod, twice, without one failed new connection', async () => {
      const { kubectl } = fleet().cluster;
      await using clients = steadyConnections({ hosts: fleet().addresses, port, clients: 8 });
      await clients.atLeast(100);
      for (const _ of ['first', 'second']) {
        await kubectl('rollout', 'restart', 'deployment/echo', '-n', namespace);
        await rolledOut();
      }
      await clients.atLeast(100);
      await clients.stop();
      assert.deepEqual(clients.failures, []);
      assert.ok(clients.pods.size >= 9, `${clients.pods.size} pods have answered, of three generations of three`);
    });
  });
}
