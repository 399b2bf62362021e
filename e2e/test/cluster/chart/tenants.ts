import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connectClient, eventually } from '@weir/testkit';
import type { ChartFleet } from '../../../src/cluster/chart-fleet.ts';
import { waitForProbeResult } from '../../../src/cluster/probe.ts';
import { echoPods, echoService, namespaceManifest } from '../../../src/manifests.ts';
import { addressesIn, conditionIn, waitForStatus } from '../../../src/service-status.ts';

/** The Service that all parts of the test use. */
export const SHOP = { path: 'shop/echo', port: 80 } as const;

export function tenants(fleet: () => ChartFleet): void {
  describe('a tenant', () => {
    test('publishes an unmodified manifest at a port below 1024', async () => {
      const { apply, kubectl } = fleet();
      await apply(namespaceManifest('shop'), echoPods({ namespace: 'shop', replicas: 3 }));
      const service = echoService({ namespace: 'shop', ports: [{ name: 'http', port: SHOP.port }] }) as {
        spec: Record<string, unknown>;
      };
      // Removes the field, as users omit it. The admission policy of the chart disables node ports instead.
      delete service.spec.allocateLoadBalancerNodePorts;
      await apply(service);
      // Waits for both addresses, because the second address may be published later than the first.
      const status = await waitForStatus(fleet().cluster, SHOP.path, (now) => addressesIn(now).length === 2);
      assert.equal(conditionIn(status, 'Programmed')?.status, 'True');
      const published = addressesIn(status);
      for (const host of published) assert.ok(fleet().addresses.includes(host));
      await waitForProbeResult({ ...fleet(), addresses: published }, { port: SHOP.port }, 'answered');
      assert.equal(await kubectl('get', 'service', 'echo', '-n', 'shop', '-o=jsonpath={.spec.ports[*].nodePort}'), '');
    });

    test('is not intercepted by kube-proxy, which handles only the cluster IP', async () => {
      for (const node of fleet().cluster.nodes) {
        const rules = await node.nftRuleset();
        for (const address of fleet().addresses) assert.ok(!rules.includes(`${address} . tcp . ${SHOP.port} `));
      }
    });

    test('reads the reason for a refused Service in kubectl describe', async () => {
      const { apply, kubectl } = fleet();
      await apply({
        apiVersion: 'weir.dev/v1alpha1',
        kind: 'TenantPolicy',
        metadata: { name: 'shop' },
        spec: {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } },
          limits: { services: 1 },
        },
      });
      const second = echoService({ namespace: 'shop', ports: [{ name: 'http', port: 81 }] }) as {
        metadata: { name: string };
      };
      second.metadata.name = 'second';
      // Waits until the status of the policy counts the tenant, because the policy is then in force.
      await kubectl('wait', '--for=jsonpath={.status.tenantCount}=1', 'tenantpolicy/shop', '--timeout=20s');
      await apply(second);
      await eventually(
        async () => {
          const text = await kubectl('describe', 'service', 'second', '-n', 'shop');
          assert.match(
            text,
            /QuotaExceeded.*1 of 1 load balancers of tenant "shop" are in use \(echo\); delete one or ask for a higher limit in TenantPolicy "shop"/,
          );
        },
        { timeoutMs: 20_000 },
      );
      await kubectl('delete', 'service', 'second', '-n', 'shop');
    });

    test('reads its usage in TenantUsage', async () => {
      await fleet().kubectl('wait', '--for=create', 'tenantusage/weir', '-n', 'shop', '--timeout=60s');
      const { status } = await fleet().get<{ status: { tenant: { name: string; services: number } } }>(
        'tenantusage',
        'weir',
        '-n',
        'shop',
      );
      assert.equal(status.tenant.name, 'shop');
    });

    test('is cut off by a Suspension with its message until the Suspension is deleted', async () => {
      const { cluster, apply, kubectl } = fleet();
      const [host = ''] = (await servedAt(fleet())).addresses;
      await using open = await connectClient({ host, port: SHOP.port });
      await open.take(/\n/);
      await apply({
        apiVersion: 'weir.dev/v1alpha1',
        kind: 'Suspension',
        metadata: { name: 'abuse' },
        spec: { target: { type: 'Tenant', tenant: 'shop' }, message: 'abuse, ask the platform team' },
      });
      const ending = await open.ended;
      assert.equal(ending.kind === 'error' && ending.code, 'ECONNRESET');
      const status = await waitForStatus(cluster, SHOP.path, (now) => conditionIn(now, 'Suspended')?.status === 'True');
      assert.match(conditionIn(status, 'Suspended')?.message ?? '', /abuse, ask the platform team/);
      await waitForProbeResult(await servedAt(fleet()), { port: SHOP.port }, 'refused');
      await kubectl('delete', 'suspension', 'abuse');
      await waitForProbeResult(await servedAt(fleet()), { port: SHOP.port }, 'answered');
    });

    test('with node ports gets the condition NodePortBypass', async () => {
      const { apply, cluster, kubectl } = fleet();
      await apply(namespaceManifest('bypass'), echoPods({ namespace: 'bypass', replicas: 1 }));
      const service = echoService({ namespace: 'bypass', ports: [{ name: 'tcp', port: 7600 }] }) as {
        spec: { ports: { nodePort?: number }[]; allocateLoadBalancerNodePorts?: boolean };
      };
      delete service.spec.allocateLoadBalancerNodePorts;
      for (const port of service.spec.ports) port.nodePort = 31_600;
      await apply(service);
      await waitForStatus(cluster, 'bypass/echo', (now) => conditionIn(now, 'Degraded')?.reason === 'NodePortBypass');
      await kubectl('delete', 'namespace', 'bypass');
    });
  });
}

/** Returns the fleet with only the addresses that the Service `SHOP` has published. */
export async function servedAt(fleet: ChartFleet): Promise<ChartFleet> {
  const status = await waitForStatus(fleet.cluster, SHOP.path, (now) => (now.loadBalancer?.ingress ?? []).length > 0);
  return { ...fleet, addresses: (status.loadBalancer?.ingress ?? []).map(({ ip }) => ip) };
}
