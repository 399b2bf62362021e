import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { connectClient, eventually } from '@weir/testkit';
import { CLIENT_ADDRESSES, type NodeFleet } from '../../src/cluster/node-fleet.ts';
import { podsReached, waitUntilServed } from '../../src/cluster/probe.ts';
import { echoPods, echoService, plainNamespace } from '../../src/manifests.ts';

const namespace = 'affinity';
const path = `${namespace}/echo`;
const port = 7400;

export function sessionAffinity(fleet: () => NodeFleet): void {
  describe('sessionAffinity', () => {
    const meetsSeveral = async (): Promise<void> => {
      for (const host of fleet().addresses) {
        const asked = { host, port, from: CLIENT_ADDRESSES[0] };
        await eventually(async () => assert.ok((await podsReached(asked, 20)).size > 1), { timeoutMs: 20_000 });
      }
    };
    const meetsOne = async (): Promise<void> => {
      for (const host of fleet().addresses) {
        const asked = { host, port, from: CLIENT_ADDRESSES[0] };
        await eventually(async () => assert.equal((await podsReached(asked, 20)).size, 1), { timeoutMs: 20_000 });
        assert.equal((await podsReached(asked, 30)).size, 1);
      }
    };

    before(async () => {
      const { apply } = fleet();
      await apply(plainNamespace(namespace));
      await apply(echoPods({ namespace, replicas: 3 }), echoService({ namespace, ports: [{ name: 'tcp', port }] }));
      await fleet().cluster.kubectl('rollout', 'status', 'deployment/echo', '-n', namespace, '--timeout=60s');
      await waitUntilServed(fleet(), path);
    });

    test('that is not asked for spreads a client over pods', meetsSeveral);

    test('switched on, on a live Service, keeps a client at one pod, and cuts nobody', async () => {
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
      await meetsOne();
      await open.send('still here');
      await open.take(/still here/);
    });

    test('switched off again, spreads the client again', async () => {
      await fleet().patchServiceSpec(path, { sessionAffinity: 'None', sessionAffinityConfig: null });
      await meetsSeveral();
    });
  });
}
