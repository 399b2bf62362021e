import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { echoPods, echoService, namespaceObject } from '../../src/cluster/echo-objects.ts';
import { comesTo, servedWell, staysAt } from '../../src/cluster/expectations.ts';
import type { RealFleet } from '../../src/cluster/real-fleet.ts';
import { addressesIn, conditionIn, statusWhen } from '../../src/kubernetes-objects.ts';

const namespace = 'scale';
const path = `${namespace}/echo`;
const TCP = { name: 'tcp', port: 7200 } as const;
const UDP = { name: 'udp', port: 7200, protocol: 'UDP' } as const;

export function scale(fleet: () => RealFleet): void {
  describe('a Deployment that is scaled', () => {
    const scaleTo = (replicas: number): Promise<string> =>
      fleet().cluster.kubectl('scale', 'deployment', 'echo', '-n', namespace, `--replicas=${replicas}`);

    before(async () => {
      const { apply } = fleet();
      await apply(namespaceObject(namespace));
      await apply(echoPods({ namespace, replicas: 2 }), echoService({ namespace, ports: [TCP, UDP] }));
      await servedWell(fleet(), path);
      for (const port of [TCP, UDP]) await comesTo(fleet(), port, 'answered');
    });

    test('to nothing has its clients refused, not accepted and closed, at addresses that stay', async () => {
      await scaleTo(0);
      const status = await statusWhen(
        fleet().cluster,
        path,
        (now) => conditionIn(now, 'Degraded')?.reason === 'NoReadyEndpoints',
      );
      assert.deepEqual(addressesIn(status), fleet().addresses);
      assert.equal(conditionIn(status, 'Programmed')?.status, 'True');
      for (const port of [TCP, UDP]) await comesTo(fleet(), port, 'refused');
    });

    test('is still refused when its last pods are gone, a while later', async () => {
      await fleet().cluster.kubectl('wait', '--for=delete', 'pod', '-l', 'app=echo', '-n', namespace, '--timeout=30s');
      for (const port of [TCP, UDP]) await staysAt(fleet(), port, 'refused');
    });

    test('and back, is answered at the same addresses', async () => {
      await scaleTo(2);
      await servedWell(fleet(), path);
      for (const port of [TCP, UDP]) await comesTo(fleet(), port, 'answered');
    });
  });
}
