import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { NodeFleet } from '../../src/cluster/node-fleet.ts';
import { assertProbeResult, waitForProbeResult, waitUntilServed } from '../../src/cluster/probe.ts';
import { echoPods, echoService, namespaceManifest } from '../../src/manifests.ts';
import { addressesIn, conditionIn, waitForStatus } from '../../src/service-status.ts';

const namespace = 'scale';
const path = `${namespace}/echo`;
const TCP = { name: 'tcp', port: 7200 } as const;
const UDP = { name: 'udp', port: 7200, protocol: 'UDP' } as const;

export function scale(fleet: () => NodeFleet): void {
  describe('a Deployment that is scaled', () => {
    const scaleTo = (replicas: number): Promise<string> =>
      fleet().cluster.kubectl('scale', 'deployment', 'echo', '-n', namespace, `--replicas=${replicas}`);

    before(async () => {
      const { apply } = fleet();
      await apply(namespaceManifest(namespace));
      await apply(echoPods({ namespace, replicas: 2 }), echoService({ namespace, ports: [TCP, UDP] }));
      await waitUntilServed(fleet(), path);
      for (const port of [TCP, UDP]) await waitForProbeResult(fleet(), port, 'answered');
    });

    test('to zero refuses clients at addresses that stay published', async () => {
      await scaleTo(0);
      const status = await waitForStatus(
        fleet().cluster,
        path,
        (now) => conditionIn(now, 'Degraded')?.reason === 'NoReadyEndpoints',
      );
      assert.deepEqual(addressesIn(status), fleet().addresses);
      assert.equal(conditionIn(status, 'Programmed')?.status, 'True');
      for (const port of [TCP, UDP]) await waitForProbeResult(fleet(), port, 'refused');
    });

    test('still refuses clients after the last pod was removed', async () => {
      await fleet().cluster.kubectl('wait', '--for=delete', 'pod', '-l', 'app=echo', '-n', namespace, '--timeout=30s');
      for (const port of [TCP, UDP]) await assertProbeResult(fleet(), port, 'refused');
    });

    test('back to two serves at the same addresses', async () => {
      await scaleTo(2);
      await waitUntilServed(fleet(), path);
      for (const port of [TCP, UDP]) await waitForProbeResult(fleet(), port, 'answered');
    });
  });
}
