import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { echoPods, echoService, namespaceObject, type PortSpec, servicePort } from '../../src/cluster/echo-objects.ts';
import { comesTo, servedWell, staysAt } from '../../src/cluster/expectations.ts';
import type { RealFleet } from '../../src/cluster/real-fleet.ts';
import { steadyConnections } from '../../src/cluster/steady-connections.ts';
import { addressesIn, type ServiceStatus, statusWhen } from '../../src/kubernetes-objects.ts';

const namespace = 'ports';
const path = `${namespace}/echo`;
const KEPT: PortSpec = { name: 'kept', port: 7100 };

export function portsAndProtocols(fleet: () => RealFleet): void {
  describe('type, ports and protocols', () => {
    const change = (ports: readonly PortSpec[]): Promise<void> =>
      fleet().change(path, { ports: [KEPT, ...ports].map(servicePort) });

    before(async () => {
      const { apply } = fleet();
      await apply(namespaceObject(namespace));
      await apply(echoPods({ namespace, replicas: 2 }), echoService({ namespace, ports: [KEPT] }));
    });

    test('a Service is served on both nodes', async () => {
      const status = await servedWell(fleet(), path);
      for (const ingress of status.loadBalancer?.ingress ?? []) {
        assert.equal(ingress.ipMode, 'Proxy');
        assert.deepEqual(ingress.ports, [{ port: 7100, protocol: 'TCP' }]);
      }
      await comesTo(fleet(), { port: 7100 }, 'answered');
      await staysAt(fleet(), { port: 7100, protocol: 'UDP' }, 'refused');
    });

    test('one that becomes a ClusterIP is given up, and back as a LoadBalancer it has its addresses again', async () => {
      await fleet().change(path, { type: 'ClusterIP', allocateLoadBalancerNodePorts: null });
      await statusWhen(fleet().cluster, path, hasNothing);
      await comesTo(fleet(), { port: 7100 }, 'refused');
      await fleet().change(path, { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false });
      await servedWell(fleet(), path);
      await comesTo(fleet(), { port: 7100 }, 'answered');
    });

    test('a port that gets another number moves there, and the Service’s other port notices nothing', async () => {
      await using clients = steadyConnections({ hosts: fleet().addresses, port: KEPT.port, clients: 4 });
      await change([{ name: 'moved', port: 7110 }]);
      await comesTo(fleet(), { port: 7110 }, 'answered');
      await change([{ name: 'moved', port: 7111 }]);
      await comesTo(fleet(), { port: 7111 }, 'answered');
      await comesTo(fleet(), { port: 7110 }, 'refused');
      assert.deepEqual(portsIn(await servedWell(fleet(), path)), ['7100/TCP', '7111/TCP']);
      await clients.atLeast(50);
      await clients.stop();
      assert.deepEqual(clients.failures, []);
    });

    test('a port turns from TCP to UDP, is both on one number, and TCP alone again', async () => {
      const tcp = { name: 'tcp', port: 7120 } as const;
      const udp = { name: 'udp', port: 7120, protocol: 'UDP' } as const;
      const comeTo = async (expected: { tcp: 'answered' | 'refused'; udp: 'answered' | 'refused' }): Promise<void> => {
        await comesTo(fleet(), tcp, expected.tcp);
        await comesTo(fleet(), udp, expected.udp);
      };
      await change([tcp]);
      await comeTo({ tcp: 'answered', udp: 'refused' });
      await change([udp]);
      await comeTo({ tcp: 'refused', udp: 'answered' });
      await change([tcp, udp]);
      await comeTo({ tcp: 'answered', udp: 'answered' });
      const both = await statusWhen(fleet().cluster, path, (now) => portsIn(now).length === 3);
      assert.deepEqual(portsIn(both), ['7100/TCP', '7120/TCP', '7120/UDP']);
      await change([tcp]);
      await comeTo({ tcp: 'answered', udp: 'refused' });
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
