import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import type { NodeFleet } from '../../src/cluster/node-fleet.ts';
import { waitForProbeResult, waitUntilServed } from '../../src/cluster/probe.ts';
import { echoPods, echoService, namespaceManifest, servicePort } from '../../src/manifests.ts';
import { addressesIn, conditionIn, waitForStatus } from '../../src/service-status.ts';

const namespace = 'bypass';
const path = `${namespace}/echo`;
const TCP = { name: 'tcp', port: 7600 } as const;

export function nodePorts(fleet: () => NodeFleet): void {
  describe('node ports and the rules of kube-proxy', () => {
    let nodePort = 0;
    let clusterIp = '';

    before(async () => {
      const { apply } = fleet();
      await apply(namespaceManifest(namespace));
      const service = echoService({ namespace, ports: [TCP], spec: { allocateLoadBalancerNodePorts: true } });
      await apply(echoPods({ namespace, replicas: 2 }), service);
    });

    test('are open by default, and the Service gets the condition NodePortBypass', async () => {
      const status = await waitForStatus(
        fleet().cluster,
        path,
        (now) => addressesIn(now).length === 2 && conditionIn(now, 'Degraded')?.reason === 'NodePortBypass',
      );
      assert.match(conditionIn(status, 'Degraded')?.message ?? '', /allocateLoadBalancerNodePorts/);
      const text = await fleet().cluster.kubectl('get', 'service', 'echo', '-n', namespace, '-o', 'json');
      const { spec } = JSON.parse(text) as { spec: { clusterIP: string; ports: { nodePort: number }[] } };
      nodePort = spec.ports[0]?.nodePort ?? 0;
      clusterIp = spec.clusterIP;
      await waitForProbeResult(fleet(), TCP, 'answered');
      await waitForProbeResult(fleet(), { port: nodePort }, 'answered');
      for (const rules of await rulesOfAll(fleet())) assert.ok(rules.includes(`tcp . ${nodePort} :`));
    });

    test('are closed when the Service disables them, and the Service stays published', async () => {
      await fleet().patchServiceSpec(path, {
        allocateLoadBalancerNodePorts: false,
        ports: [{ ...servicePort(TCP), nodePort: 0 }],
      });
      await waitUntilServed(fleet(), path);
      await waitForProbeResult(fleet(), { port: nodePort }, 'refused');
      await waitForProbeResult(fleet(), TCP, 'answered');
      for (const rules of await rulesOfAll(fleet())) assert.ok(!rules.includes(`tcp . ${nodePort} :`));
    });

    test('kube-proxy intercepts the cluster IP but not the published addresses', async () => {
      for (const rules of await rulesOfAll(fleet())) {
        assert.match(rules, new RegExp(`${clusterIp.replaceAll('.', '\\.')} \\. tcp \\. ${TCP.port} :`));
        for (const address of fleet().addresses) assert.ok(!rules.includes(`${address} . tcp . ${TCP.port} `));
      }
    });

    test('kube-proxy would intercept addresses published with ipMode VIP', async () => {
      const { kubectl } = fleet().cluster;
      const [address = ''] = fleet().addresses;
      const ingress = [{ ip: address, ipMode: 'VIP' }];
      const manifest = {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { namespace, name: 'other' },
        spec: {
          type: 'LoadBalancer',
          loadBalancerClass: 'example.test/other',
          selector: { app: 'echo' },
          ports: [servicePort({ name: 'tcp', port: 7601 })],
        },
      };
      await fleet().apply(manifest);
      const patch = JSON.stringify({ status: { loadBalancer: { ingress } } });
      await kubectl('patch', 'service', 'other', '-n', namespace, '--subresource=status', '--type=merge', '-p', patch);
      await eventually(async () => {
        for (const rules of await rulesOfAll(fleet())) assert.ok(rules.includes(`${address} . tcp . 7601 `));
      });
      await kubectl('delete', 'service', 'other', '-n', namespace);
    });
  });
}

function rulesOfAll({ cluster }: NodeFleet): Promise<string[]> {
  return Promise.all(cluster.nodes.map((node) => node.nftRuleset()));
}
