import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { connectRaw, eventually } from '@weir/testkit';
import { echoPods, echoService, namespaceObject } from '../../src/cluster/echo-objects.ts';
import { podsMet, servedWell } from '../../src/cluster/expectations.ts';
import { CLIENTS, type RealFleet } from '../../src/cluster/real-fleet.ts';

const namespace = 'affinity';
const path = `${namespace}/echo`;
const port = 7400;

export function affinity(fleet: () => RealFleet): void {
  describe('sessionAffinity', () => {
    const meetsSeveral = async (): Promise<void> => {
      for (const host of fleet().addresses) {
        const asked = { host, port, from: CLIENTS[0] };
        await eventually(async () => assert.ok((await podsMet(asked, 20)).size > 1), { timeoutMs: 20_000 });
      }
    };
    const meetsOne = async (): Promise<void> => {
      for (const host of fleet().addresses) {
        const asked = { host, port, from: CLIENTS[0] };
        await eventually(async () => assert.equal((await podsMet(asked, 20)).size, 1), { timeoutMs: 20_000 });
        assert.equal((await podsMet(asked, 30)).size, 1);
      }
    };

    before(async () => {
      const { apply } = fleet();
      await apply(namespaceObject(namespace));
      await apply(echoPods({ namespace, replicas: 3 }), echoService({ namespace, ports: [{ name: 'tcp', port }] }));
      await fleet().cluster.kubectl('rollout', 'status', 'deployment/echo', '-n', namespace, '--timeout=60s');
      await servedWell(fleet(), path);
    });

    test('that is not asked for spreads a client over pods', meetsSeveral);

    test('switched on, on a live Service, keeps a client at one pod, and cuts nobody', async () => {
      await using open = await connectRaw({ host: fleet().addresses[0] ?? '', port, localAddress: CLIENTS[0] });
      await open.take(/\n/);
      await fleet().change(path, {
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } },
      });
      await meetsOne();
      await open.send('still here');
      await open.take(/still here/);
    });

    test('switched off again, spreads the client again', async () => {
      await fleet().change(path, { sessionAffinity: 'None', sessionAffinityConfig: null });
      await meetsSeveral();
    });
  });
}
