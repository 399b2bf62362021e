import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { connectClient, eventually } from '@weir/testkit';
import { CLIENT_ADDRESSES, type NodeFleet } from '../../src/cluster/node-fleet.ts';
import { podsReached, waitUntilServed } from '../../src/cluster/probe.ts';
import { echoPods, echoService, namespaceManifest } from '../../src/manifests.ts';

const namespace = 'affinity';
const path = `${namespace}/echo`;
const port = 7400;

export function sessionAffinity(fleet: () => NodeFleet): void {
  describe('sessionAffinity', () => {
    const reachesSeveralPods = async (): Promise<void> => {
      for (const host of fleet().addresses) {
        const target = { host, port, from: CLIENT_ADDRESSES[0] };
        await eventually(async () => assert.ok((await podsReached(target, 20)).size > 1), { timeoutMs: 20_000 });
      }
    };
    const reachesOnePod = async (): Promise<void> => {
      for (const host of fleet().addresses) {
        const target = { host, port, from: CLIENT_ADDRESSES[0] };
        await eventually(async () => assert.equal((await podsReached(target, 20)).size, 1), { timeoutMs: 20_000 });
        assert.equal((await podsReached(target, 30)).size, 1);
      }
    };

    before(async () => {
      const { apply } = fleet();
      await apply(namespaceManifest(namespace));
      await apply(echoPods({ namespace, replicas: 3 }), echoService({ namespace, ports: [{ name: 'tcp', port }] }));
      await fleet().cluster.kubectl('rollout', 'status', 'deployment/echo', '-n', namespace, '--timeout=60s');
      await waitUntilServed(fleet(), path);
    });

    test('spreads a client over pods by default', reachesSeveralPods);

    test('keeps a client at one pod after it is enabled, and keeps open connections', async () => {
      await using open = await connectClient({
        host: fleet().addresses[0] ?? '',
        port,
        localAddress: CLIENT_ADDRESSES[0],
      });
      await open.take(/\n/);
      await fleet().patchServiceSpec(path, {
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } },
      });
      await reachesOnePod();
      await open.send('still here');
      await open.take(/still here/);
    });

    test('spreads the client again after it is disabled', async () => {
      await fleet().patchServiceSpec(path, { sessionAffinity: 'None', sessionAffinityConfig: null });
      await reachesSeveralPods();
    });
  });
}
