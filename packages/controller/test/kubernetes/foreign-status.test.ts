// Another controller writes the status of Services that Weir serves, as ServiceLB of k3s does.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import {
  addNode,
  type Cluster,
  keepSendingHeartbeats,
  namespace,
  service,
  startCluster,
  startRunningController,
} from '../fixtures/cluster.ts';
import { conditionsOf, eventuallyWithHeartbeats, serviceNow } from '../fixtures/service-status.ts';

const LONG = { timeoutMs: 30_000 };

describe(
  'the status of another controller',
  requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'),
  () => {
    let cluster: Cluster;
    before(async () => {
      cluster = await startCluster();
      await addNode(cluster, 'a', '10.1.0.1');
      await cluster.apply(namespace('shop'));
    });
    after(() => cluster?.[Symbol.asyncDispose]());

    const writeAddress = (name: string, ip: string): Promise<string> =>
      cluster.kubectl(
        ...['patch', 'service', name, '-n', 'shop', '--subresource=status', '--type=merge', '--field-manager=k3s'],
        ...['-p', JSON.stringify({ status: { loadBalancer: { ingress: [{ ip }] } } })],
      );

    test('publishes no address before a proxy has confirmed the ports, unlike the status that Weir wrote', async () => {
      await cluster.apply(service('left', 'shop', 80));
      await writeAddress('left', '10.1.0.1');
      {
        await using _running = startRunningController(cluster, { fleet: 'weir' });
        await eventually(async () => {
          const found = conditionsOf(await serviceNow(cluster, 'shop', 'left'));
          assert.ok(found.includes('Programmed False WaitingForProxy'), found.join());
        }, LONG);
      }
      {
        await using running = startRunningController(cluster, { fleet: 'weir' });
        await eventuallyWithHeartbeats(running, async () => {
          const { status } = await serviceNow(cluster, 'shop', 'left');
          assert.deepEqual(status.loadBalancer.ingress, [
            { ip: '10.1.0.1', ipMode: 'Proxy', ports: [{ port: 80, protocol: 'TCP' }] },
          ]);
        });
      }
      await using _next = startRunningController(cluster, { fleet: 'weir' });
      await eventually(async () => {
        const now = await serviceNow(cluster, 'shop', 'left');
        assert.ok(conditionsOf(now).includes('Programmed Unknown NoProxy'), conditionsOf(now).join());
        assert.equal(now.status.loadBalancer.ingress?.[0]?.ip, '10.1.0.1');
      }, LONG);
    });

    test('loses to Weir only a few times, and then Weir names its field manager', async (context) => {
      await using running = startRunningController(cluster);
      keepSendingHeartbeats(context, running.store, () => ['a']);
      await cluster.apply(service('disputed', 'shop', 81));
      const ipOf = async (): Promise<string | undefined> =>
        (await serviceNow(cluster, 'shop', 'disputed')).status.loadBalancer.ingress?.[0]?.ip;
      for (let time = 0; time < 6; time += 1) {
        await eventually(async () => assert.equal(await ipOf(), '10.1.0.1'), LONG);
        await writeAddress('disputed', '10.9.9.9');
      }
      await eventually(async () => {
        const now = await serviceNow(cluster, 'shop', 'disputed');
        assert.ok(conditionsOf(now).includes('Degraded True ForeignController'), conditionsOf(now).join());
        assert.match(JSON.stringify(now.status.conditions), /field manager \\"k3s\\"/);
      }, LONG);
      const events = await cluster.kubectl('get', 'events.v1.events.k8s.io', '-n', 'shop', '-o', 'json');
      assert.match(events, /"reason": "ForeignController"/);
      assert.equal(await ipOf(), '10.9.9.9', 'Weir leaves the address to the other controller for a while');
    });
  },
);
