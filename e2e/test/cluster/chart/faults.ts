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
  /** Secrets of the release are deleted, and made again by an upgrade. */
  const renewed = async (...secrets: readonly string[]): Promise<void> => {
    const { kubectl, install } = fleet();
    const certificate = (): Promise<string> =>
      kubectl('get', 'secret', 'weir-redis-tls', '-n', RELEASE_NAMESPACE, '-o=jsonpath={.data.tls\\.crt}');
    const before = await certificate();
    await kubectl('delete', ...secrets.map((each) => `secret/weir-${each}`), '-n', RELEASE_NAMESPACE);
    await install('weir', '--reuse-values');
    assert.notEqual(await certificate(), before);
  };

  describe('a fault', () => {
    test('of Redis stops no traffic, and what is applied meanwhile is served once it is back', async () => {
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

    test('the certificate of Redis is renewed, and nobody notices', async () => {
      const before = await serviceStatus(fleet().cluster, SHOP.path);
      await underLoad(fleet(), () => renewed('redis-tls'));
      assert.deepEqual(await serviceStatus(fleet().cluster, SHOP.path), before);
    });

    test('all certificates are made anew, the CA among them, and traffic goes on until every process knows it', async () => {
      const { addresses } = await servedAt(fleet());
      await underLoad(fleet(), async () => {
        await renewed('redis-tls', 'ca', 'proxy-tls', 'controller-tls', 'console-tls');
        await fleet().patchServiceSpec(SHOP.path, { ports: ports(SHOP.port, 7701) });
        // Kubelets bring the new CA within a minute or two, and with it what is new at the proxies.
        await eventually(async () => assertProbeResult({ ...fleet(), addresses }, { port: 7701 }, 'answered'), {
          timeoutMs: 150_000,
        });
        await fleet().patchServiceSpec(SHOP.path, { ports: ports(SHOP.port) });
        await eventually(async () => assert.deepEqual(await addressesNow(fleet()), addresses), { timeoutMs: 30_000 });
      });
    });

    test('of a node takes its address out of the status, and traffic goes on at the other', async () => {
      const { cluster } = fleet();
      const { addresses } = await servedAt(fleet());
      // Redis lives on the first node, whose loss would be another test.
      const lost = cluster.nodes.find(({ address }, index) => index > 0 && addresses.includes(address));
      assert.ok(lost);
      const left = addresses.filter((address) => address !== lost.address);
      lost.setLink('down');
      try {
        // Another leads first, if who led was there.
        await eventually(async () => assert.ok(!(await addressesNow(fleet())).includes(lost.address)), {
          timeoutMs: 90_000,
        });
        // Its pods are endpoints until Kubernetes gives it up; each proxy finds out by itself that they do not answer.
        await eventually(() => assertProbeResult({ ...fleet(), addresses: left }, { port: SHOP.port }, 'answered'), {
          timeoutMs: 60_000,
        });
      } finally {
        lost.setLink('up');
      }
      await eventually(async () => assert.deepEqual(addressesIn(await serviceStatus(cluster, SHOP.path)), addresses), {
        timeoutMs: 60_000,
      });
      await waitForProbeResult({ ...fleet(), addresses }, { port: SHOP.port }, 'answered');
    });

    test('a node that lost its power comes back, and serves as before', async () => {
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

    test('a node that is no load balancer any more is left, and taken again', async () => {
      const { cluster, kubectl } = fleet();
      const { addresses } = await servedAt(fleet());
      const gone = cluster.nodes.find(({ address }) => addresses.includes(address));
      assert.ok(gone);
      await kubectl('label', 'node', gone.name, 'role-');
      const status = await waitForStatus(
        cluster,
        SHOP.path,
        (now) => addressesIn(now).length === 2 && !addressesIn(now).includes(gone.address),
      );
      await waitForProbeResult({ ...fleet(), addresses: addressesIn(status) }, { port: SHOP.port }, 'answered');
      await kubectl('label', 'node', gone.name, 'role=loadbalancer');
      await kubectl('rollout', 'status', 'daemonset/weir-proxy', '-n', RELEASE_NAMESPACE, '--timeout=120s');
    });

    test('a node that is drained goes on serving, and what ran on it moves', async () => {
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

/** How often the proxy of a node was started again. */
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
