import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import { type ChartFleet, RELEASE_NAMESPACE } from '../../../src/cluster/chart-fleet.ts';
import { assertProbeResult, waitForProbeResult } from '../../../src/cluster/probe.ts';
import { echoService } from '../../../src/manifests.ts';
import { addressesIn, serviceStatus, waitForStatus } from '../../../src/service-status.ts';
import { SHOP, servedAt } from './tenants.ts';
import { underLoad } from './upgrades.ts';

export function faults(fleet: () => ChartFleet): void {
  /** Deletes Secrets of the release and runs an upgrade, which generates the Secrets again. */
  const renewSecrets = async (...secrets: readonly string[]): Promise<void> => {
    const { kubectl, install } = fleet();
    const certificate = (): Promise<string> =>
      kubectl('get', 'secret', 'weir-redis-tls', '-n', RELEASE_NAMESPACE, '-o=jsonpath={.data.tls\\.crt}');
    const before = await certificate();
    await kubectl('delete', ...secrets.map((each) => `secret/weir-${each}`), '-n', RELEASE_NAMESPACE);
    await install('weir', '--reuse-values');
    assert.notEqual(await certificate(), before);
  };

  describe('a fault', () => {
    test('of Redis stops no traffic, and changes are served when Redis is back', async () => {
      const { cluster, kubectl, apply, patchServiceSpec } = fleet();
      await underLoad(fleet(), async () => {
        await kubectl('scale', 'statefulset/weir-redis', '-n', RELEASE_NAMESPACE, '--replicas=0');
        await kubectl('wait', '--for=delete', 'pod/weir-redis-0', '-n', RELEASE_NAMESPACE, '--timeout=60s');
        await apply(
          echoService({
            namespace: 'shop',
            ports: [
              { name: 'http', port: SHOP.port },
              { name: 'more', port: 7700 },
            ],
          }),
        );
        await kubectl('scale', 'statefulset/weir-redis', '-n', RELEASE_NAMESPACE, '--replicas=1');
        await waitForProbeResult(await servedAt(fleet()), { port: 7700 }, 'answered');
      });
      await patchServiceSpec(SHOP.path, { ports: ports(SHOP.port) });
      await waitForStatus(
        cluster,
        SHOP.path,
        (now) => now.loadBalancer?.ingress?.every((each) => each.ports?.length === 1) === true,
      );
    });

    test('renewing the certificate of Redis fails no connection', async () => {
      const before = await serviceStatus(fleet().cluster, SHOP.path);
      await underLoad(fleet(), () => renewSecrets('redis-tls'));
      assert.deepEqual(await serviceStatus(fleet().cluster, SHOP.path), before);
    });

    test('renewing the CA and all certificates fails no connection', async () => {
      const { addresses } = await servedAt(fleet());
      await underLoad(fleet(), async () => {
        await renewSecrets('redis-tls', 'ca', 'proxy-tls', 'controller-tls', 'console-tls');
        await fleet().patchServiceSpec(SHOP.path, { ports: ports(SHOP.port, 7701) });
        // Waits up to 150 s, because kubelets take up to two minutes to update the mounted CA. Until then, no change reaches the proxies.
        await eventually(async () => assertProbeResult({ ...fleet(), addresses }, { port: 7701 }, 'answered'), {
          timeoutMs: 150_000,
        });
        await fleet().patchServiceSpec(SHOP.path, { ports: ports(SHOP.port) });
        await eventually(async () => assert.deepEqual(await addressesNow(fleet()), addresses), { timeoutMs: 30_000 });
      });
    });

    test('of a node withdraws its address, and traffic continues at the other address', async () => {
      const { cluster } = fleet();
      const { addresses } = await servedAt(fleet());
      // Chooses a node other than the first, because Redis runs on the first node and must not fail in this test.
      const lost = cluster.nodes.find(({ address }, index) => index > 0 && addresses.includes(address));
      assert.ok(lost);
      const remaining = addresses.filter((address) => address !== lost.address);
      lost.setLink('down');
      try {
        // Waits up to 90 s: if the leader ran on the lost node, another controller must become leader first.
        await eventually(async () => assert.ok(!(await addressesNow(fleet())).includes(lost.address)), {
          timeoutMs: 90_000,
        });
        // The pods of the lost node remain endpoints until Kubernetes marks the node as unreachable. Until then, passive health checks
        // exclude these pods.
        await eventually(
          () => assertProbeResult({ ...fleet(), addresses: remaining }, { port: SHOP.port }, 'answered'),
          {
            timeoutMs: 60_000,
          },
        );
      } finally {
        lost.setLink('up');
      }
      await eventually(async () => assert.deepEqual(addressesIn(await serviceStatus(cluster, SHOP.path)), addresses), {
        timeoutMs: 60_000,
      });
      await waitForProbeResult({ ...fleet(), addresses }, { port: SHOP.port }, 'answered');
    });

    test('a node serves again after a power failure', async () => {
      const { cluster } = fleet();
      const { addresses } = await servedAt(fleet());
      const rebooted = cluster.nodes.find(({ address }, index) => index > 0 && addresses.includes(address));
      assert.ok(rebooted);
      await rebooted.reboot();
      await eventually(async () => assert.ok((await restartsOf(fleet(), rebooted.name)) > 0), { timeoutMs: 90_000 });
      await fleet().kubectl('wait', 'pods', '--all', '-n', 'shop', '--for=condition=Ready', '--timeout=90s');
      await eventually(async () => assert.deepEqual(addressesIn(await serviceStatus(cluster, SHOP.path)), addresses), {
        timeoutMs: 90_000,
      });
      await waitForProbeResult({ ...fleet(), addresses }, { port: SHOP.port }, 'answered');
    });

    test('a node without the label is withdrawn, and used again with the label', async () => {
      const { cluster, kubectl } = fleet();
      const { addresses } = await servedAt(fleet());
      const unlabelled = cluster.nodes.find(({ address }) => addresses.includes(address));
      assert.ok(unlabelled);
      await kubectl('label', 'node', unlabelled.name, 'role-');
      const status = await waitForStatus(
        cluster,
        SHOP.path,
        (now) => addressesIn(now).length === 2 && !addressesIn(now).includes(unlabelled.address),
      );
      await waitForProbeResult({ ...fleet(), addresses: addressesIn(status) }, { port: SHOP.port }, 'answered');
      await kubectl('label', 'node', unlabelled.name, 'role=loadbalancer');
      await kubectl('rollout', 'status', 'daemonset/weir-proxy', '-n', RELEASE_NAMESPACE, '--timeout=120s');
    });

    test('a drained node continues to serve, and its other pods move', async () => {
      const { cluster, kubectl } = fleet();
      const node = cluster.nodes[2]?.name ?? '';
      await underLoad(fleet(), async () => {
        await kubectl('drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=90s');
        await kubectl('uncordon', node);
      });
      await kubectl('rollout', 'status', 'deployment/weir-controller', '-n', RELEASE_NAMESPACE, '--timeout=120s');
    });
  });
}

async function addressesNow({ cluster }: ChartFleet): Promise<readonly string[]> {
  return addressesIn(await serviceStatus(cluster, SHOP.path));
}

/** Returns how often the proxy of a node was restarted. */
async function restartsOf({ kubectl }: ChartFleet, node: string): Promise<number> {
  const path = '{.items[*].status.containerStatuses[0].restartCount}';
  const args = [
    '-l=app.kubernetes.io/component=proxy',
    `--field-selector=spec.nodeName=${node}`,
    `-o=jsonpath=${path}`,
  ];
  const counts = (await kubectl('get', 'pods', '-n', RELEASE_NAMESPACE, ...args)).split(' ').map(Number);
  return Math.max(0, ...counts);
}

function ports(...numbers: readonly number[]): object[] {
  return numbers.map((port) => ({ name: `tcp-${port}`, port, protocol: 'TCP', targetPort: 7000 }));
}
