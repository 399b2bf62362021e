import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import { type ChartFleet, RELEASE_NAMESPACE } from '../../../src/cluster/chart-fleet.ts';
import { serviceStatus } from '../../../src/service-status.ts';
import { type SteadyConnections, steadyConnections } from '../../../src/steady-load.ts';
import { SHOP, servedAt } from './tenants.ts';

export function upgrades(fleet: () => ChartFleet): void {
  describe('while clients connect continuously', () => {
    const restart = async (...workloads: readonly string[]): Promise<void> => {
      for (const each of workloads) await fleet().kubectl('rollout', 'restart', each, '-n', RELEASE_NAMESPACE);
      for (const each of workloads)
        await fleet().kubectl('rollout', 'status', each, '-n', RELEASE_NAMESPACE, '--timeout=180s');
    };

    test('replacing every proxy fails no connection', async () => {
      const before = await proxyPods(fleet());
      await underLoad(fleet(), () => restart('daemonset/weir-proxy'));
      // Waits, because the last old proxy may still be draining.
      await eventually(
        async () => {
          const after = await proxyPods(fleet());
          assert.equal(after.length, 3);
          assert.ok(!after.some((name) => before.includes(name)));
        },
        { timeoutMs: 60_000 },
      );
    });

    test('replacing controllers, console and Redis fails no connection', async () => {
      const before = await serviceStatus(fleet().cluster, SHOP.path);
      await underLoad(fleet(), () =>
        restart('deployment/weir-controller', 'deployment/weir-console', 'statefulset/weir-redis'),
      );
      assert.deepEqual(await serviceStatus(fleet().cluster, SHOP.path), before);
    });

    test('an upgrade with new settings and a rollback fail no connection', async () => {
      await underLoad(fleet(), async () => {
        await fleet().install(
          'weir',
          '--reuse-values',
          '--set=proxy.workers=1,proxy.drainSeconds=5,controller.replicas=1',
        );
        assert.equal(await drainSeconds(fleet()), '5s');
      });
      await underLoad(fleet(), async () => {
        await fleet().helm('rollback', 'weir', '1', '--wait', '--timeout=3m');
        assert.equal(await drainSeconds(fleet()), '30s');
      });
    });
  });
}

/** Connects to the published addresses before, during and after `change`, and asserts that no connection fails. */
export async function underLoad(fleet: ChartFleet, change: () => Promise<void>): Promise<void> {
  const { addresses } = await servedAt(fleet);
  const clients: SteadyConnections = steadyConnections({ hosts: addresses, port: SHOP.port, clients: 4 });
  try {
    await clients.waitForMore(50);
    await change();
    await clients.waitForMore(50);
  } finally {
    await clients.stop();
  }
  assert.deepEqual(clients.failures, []);
}

async function proxyPods({ kubectl }: ChartFleet): Promise<readonly string[]> {
  const text = await kubectl('get', 'pods', '-n', RELEASE_NAMESPACE, '-l=app.kubernetes.io/component=proxy', '-o=name');
  return text.trim().split('\n');
}

async function drainSeconds({ kubectl }: ChartFleet): Promise<string> {
  const path = '{.spec.template.spec.containers[0].env[?(@.name=="WEIR_DRAIN")].value}';
  return kubectl('get', 'daemonset', 'weir-proxy', '-n', RELEASE_NAMESPACE, `-o=jsonpath=${path}`);
}
