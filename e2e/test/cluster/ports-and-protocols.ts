import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { NodeFleet } from '../../src/cluster/node-fleet.ts';
import { assertProbeResult, waitForProbeResult, waitUntilServed } from '../../src/cluster/probe.ts';
import { echoPods, echoService, namespaceManifest, type PortSpec, servicePort } from '../../src/manifests.ts';
import { addressesIn, type ServiceStatus, waitForStatus } from '../../src/service-status.ts';
import { steadyConnections } from '../../src/steady-load.ts';

const namespace = 'ports';
const path = `${namespace}/echo`;
/** The ports `TCP` and `UDP`, which no test changes. */
const TCP = { name: 'tcp', port: 7100 } as const;
const UDP = { name: 'udp', port: 7101, protocol: 'UDP' } as const;

export function portsAndProtocols(fleet: () => NodeFleet): void {
  describe('type, ports and protocols', () => {
    const change = (ports: readonly PortSpec[]): Promise<void> =>
      fleet().patchServiceSpec(path, { ports: [TCP, UDP, ...ports].map(servicePort) });

    const waitForBoth = async (kind: 'answered' | 'refused'): Promise<void> => {
      for (const each of [TCP, UDP]) await waitForProbeResult(fleet(), each, kind);
    };

    before(async () => {
      const { apply } = fleet();
      await apply(namespaceManifest(namespace));
      await apply(echoPods({ namespace, replicas: 2 }), echoService({ namespace, ports: [TCP, UDP] }));
    });

    test('a Service is served on both nodes', async () => {
      const status = await waitUntilServed(fleet(), path);
      for (const ingress of status.loadBalancer?.ingress ?? []) {
        assert.equal(ingress.ipMode, 'Proxy');
      }
      assert.deepEqual(portsIn(status), ['7100/TCP', '7101/UDP']);
      await waitForBoth('answered');
      await assertProbeResult(fleet(), { ...TCP, protocol: 'UDP' }, 'refused');
      await assertProbeResult(fleet(), { ...UDP, protocol: 'TCP' }, 'refused');
    });

    test('a Service loses its addresses as ClusterIP and regains them as LoadBalancer', async () => {
      await fleet().patchServiceSpec(path, { type: 'ClusterIP', allocateLoadBalancerNodePorts: null });
      await waitForStatus(fleet().cluster, path, hasNothing);
      await waitForBoth('refused');
      await fleet().patchServiceSpec(path, { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false });
      await waitUntilServed(fleet(), path);
      await waitForBoth('answered');
    });

    test('changed port numbers take effect without failures at other ports', async () => {
      await using clients = steadyConnections({ hosts: fleet().addresses, port: TCP.port, clients: 4 });
      const moved = (port: number): PortSpec[] => [
        { name: 'moved-tcp', port },
        { name: 'moved-udp', port: port + 10, protocol: 'UDP' },
      ];
      const waitForMoved = async (port: number, kind: 'answered' | 'refused'): Promise<void> => {
        for (const each of moved(port)) await waitForProbeResult(fleet(), each, kind);
      };
      await change(moved(7110));
      await waitForMoved(7110, 'answered');
      await change(moved(7111));
      await waitForMoved(7111, 'answered');
      await waitForMoved(7110, 'refused');
      const status = await waitForStatus(fleet().cluster, path, (now) => portsIn(now).includes('7111/TCP'));
      assert.deepEqual(portsIn(status), ['7100/TCP', '7101/UDP', '7111/TCP', '7121/UDP']);
      assert.deepEqual(addressesIn(status), fleet().addresses);
      await clients.waitForMore(50);
      await clients.stop();
      assert.deepEqual(clients.failures, []);
    });

    test('a port changes from TCP to UDP, to both protocols, and back to TCP', async () => {
      const tcp = { name: 'turned-tcp', port: 7130 } as const;
      const udp = { name: 'turned-udp', port: 7130, protocol: 'UDP' } as const;
      const waitForResults = async (expected: {
        tcp: 'answered' | 'refused';
        udp: 'answered' | 'refused';
      }): Promise<void> => {
        await waitForProbeResult(fleet(), tcp, expected.tcp);
        await waitForProbeResult(fleet(), udp, expected.udp);
      };
      await change([tcp]);
      await waitForResults({ tcp: 'answered', udp: 'refused' });
      await change([udp]);
      await waitForResults({ tcp: 'refused', udp: 'answered' });
      await change([tcp, udp]);
      await waitForResults({ tcp: 'answered', udp: 'answered' });
      const both = await waitForStatus(fleet().cluster, path, (now) => portsIn(now).length === 4);
      assert.deepEqual(portsIn(both), ['7100/TCP', '7101/UDP', '7130/TCP', '7130/UDP']);
      await change([tcp]);
      await waitForResults({ tcp: 'answered', udp: 'refused' });
    });
  });
}

function hasNothing(status: ServiceStatus): boolean {
  return addressesIn(status).length === 0 && (status.conditions ?? []).length === 0;
}

function portsIn(status: ServiceStatus): string[] {
  const [first] = status.loadBalancer?.ingress ?? [];
  return (first?.ports ?? []).map(({ port, protocol, error }) => `${port}/${protocol}${error ? ` ${error}` : ''}`);
}
