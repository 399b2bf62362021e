// Rules of a TenantPolicy on a real API server, with recorded usage.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { entriesOf, minuteOf } from '@weir/model';
import type { MemoryStore } from '@weir/store';
import { eventually as eventuallyWithin } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import {
  addNode,
  type Cluster,
  namespace,
  type RunningController,
  sendHeartbeat,
  service,
  startCluster,
  startRunningController,
} from '../fixtures/cluster.ts';

const eventually = (assertion: () => Promise<void>): Promise<void> =>
  eventuallyWithin(assertion, { timeoutMs: 60_000, intervalMs: 200 });

interface ServiceJson {
  readonly metadata: { readonly uid: string };
  readonly status: {
    readonly conditions?: readonly { readonly type: string; readonly reason: string; readonly message: string }[];
  };
}

interface EventJson {
  readonly reason: string;
  readonly note: string;
  readonly regarding: { readonly kind: string };
}

describe(
  'the rules of a TenantPolicy on a real API server',
  requireProgram('etcd', 'kube-apiserver', 'kubectl'),
  () => {
    let cluster: Cluster;
    let running: RunningController;
    let traffic: Traffic | undefined;
    before(async () => {
      cluster = await startCluster();
      await addNode(cluster, 'node-1', '192.0.2.1');
      await cluster.apply(namespace('shop', { team: 'shop' }), service('web', 'shop', 80));
      running = startRunningController(cluster);
      const { metadata } = await cluster.get<ServiceJson>('service', 'web', '-n', 'shop');
      traffic = startTraffic(running.store, metadata.uid);
    });
    after(async () => {
      await traffic?.close();
      await running?.[Symbol.asyncDispose]();
      await cluster?.[Symbol.asyncDispose]();
    });

    const setRules = (...rules: readonly object[]): Promise<void> =>
      cluster.apply({
        apiVersion: 'weir.dev/v1alpha1',
        kind: 'TenantPolicy',
        metadata: { name: 'shops' },
        spec: {
          namespaceSelector: { matchLabels: { team: 'shop' } },
          limits: { outBitsPerSecond: '1G' },
          rules,
        },
      });
    /** Returns the notes of the Events about an object of this kind. */
    const notesOf = async (inNamespace: string, kind: string, reason: string): Promise<string> => {
      const text = await cluster.kubectl('get', 'events.events.k8s.io', '-n', inNamespace, '-o', 'json');
      const { items } = JSON.parse(text) as { items: readonly EventJson[] };
      const found = items.filter((event) => event.reason === reason && event.regarding.kind === kind);
      return found.map(({ note }) => note).join('\n');
    };
    const conditionOf = async (type: string): Promise<string> => {
      const { status } = await cluster.get<ServiceJson>('service', 'web', '-n', 'shop');
      const found = status.conditions?.find((each) => each.type === `weir.dev/${type}`);
      return found === undefined ? '' : `${found.reason}: ${found.message}`;
    };

    test('Notify writes Events at the policy and in the namespace, and a rule that cannot work is refused', async () => {
      await setRules(
        { name: 'tell', metric: 'outBitsPerSecond', above: '1M', action: 'Notify' },
        { name: 'wrong', metric: 'outBitsPerSecond', above: '80%', action: 'Throttle', throttleTo: '2G' },
      );
      await eventually(async () => {
        const { status } = await cluster.get<{
          status?: { conditions?: { status: string; reason: string; message: string }[] };
        }>('tenantpolicy', 'shops');
        const [condition] = status?.conditions ?? [];
        assert.deepEqual([condition?.status, condition?.reason], ['False', 'InvalidRule']);
        assert.match(
          condition?.message ?? '',
          /^rule "wrong" does not act: spec.rules\[1\].throttleTo is "2G"; use less than/,
        );
      });
      const expected =
        /rule "tell" of TenantPolicy "shops": tenant "shop" has \S+ Mbit\/s out, above 1 Mbit\/s; action/;
      await eventually(async () => assert.match(await notesOf('default', 'TenantPolicy', 'RuleNotifies'), expected));
      await eventually(async () => assert.match(await notesOf('shop', 'Namespace', 'RuleNotifies'), expected));
      assert.match(await cluster.kubectl('describe', 'tenantpolicy', 'shops'), /Warning +RuleNotifies .*rule "tell"/);
      assert.equal(await conditionOf('Degraded').then((text) => text.includes('rule')), false);
    });

    test('Throttle lowers the limit, and the Service says why and until when', async () => {
      await setRules({
        name: 'slow',
        metric: 'outBitsPerSecond',
        above: '1M',
        action: 'Throttle',
        throttleTo: '2M',
        duration: '1h',
      });
      await eventually(async () => {
        const { table } = (await running.store.table.read()) ?? assert.fail('no table');
        const tenant = entriesOf(table, 'tenant').find(({ name }) => name === 'shop');
        assert.deepEqual(
          [tenant?.limits.outBitsPerSecond, tenant?.policyLimits?.outBitsPerSecond],
          [2_000_000, 1_000_000_000],
        );
      });
      await eventually(async () =>
        assert.match(
          await conditionOf('Degraded'),
          /rule "slow" of TenantPolicy "shops" throttles: outBitsPerSecond of tenant "shop" is limited to 2 Mbit\/s until \S+Z, because of/,
        ),
      );
      await eventually(async () =>
        assert.match(
          await cluster.kubectl('describe', 'service', 'web', '-n', 'shop'),
          /Warning .*rule "slow" .* throttles/,
        ),
      );
    });

    test('Suspend creates a Suspension with rule and figures, and not again after its deletion', async () => {
      await setRules({ name: 'stop', metric: 'outBitsPerSecond', above: '1M', action: 'Suspend', duration: '1h' });
      await eventually(async () => {
        const { spec } = await cluster.get<{ spec: { rule?: string; target: object; until?: string } }>(
          'suspension',
          'rule.shop.stop',
        );
        assert.match(spec.rule ?? '', /^stop: \S+ Mbit\/s out, above 1 Mbit\/s$/);
        assert.deepEqual(spec.target, { type: 'Tenant', tenant: 'shop' });
        assert.ok(Date.parse(spec.until ?? '') > Date.now() + 3_000_000);
      });
      await eventually(async () => assert.match(await conditionOf('Suspended'), /^SuspendedByRule: .*rule "stop"/));
      await cluster.kubectl('delete', 'suspension', 'rule.shop.stop');
      await eventually(async () =>
        assert.match(await notesOf('default', 'TenantPolicy', 'RuleEnded'), /a user ended the Suspension/),
      );
      assert.equal(await conditionOf('Suspended'), '');
      const [made, released] = (await running.store.suspensions.audit()).toReversed();
      assert.match(made?.suspension.rule ?? '', /^stop: /);
      assert.equal(released?.release?.why, 'deleted');
    });
  },
);

interface Traffic {
  close(): Promise<void>;
}

/** Reports 10 Mbit/s of a proxy on node-1 and its heartbeats, until `close`. */
function startTraffic(store: MemoryStore, uid: string): Traffic {
  const closing = new AbortController();
  const startedAt = Date.now();
  const slot = { service: uid, tenant: 'shop', namespace: 'shop', name: 'web' };
  const send = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      const now = Date.now();
      const counters = { receivedBytes: 0, sentBytes: (now - startedAt) * 1_250, connections: 1, requests: 0 };
      await store.usage.flush({
        node: 'node-1',
        life: 1,
        slots: [{ ...slot, points: [{ minute: minuteOf(now), counters }] }],
      });
      await sendHeartbeat(store, 'node-1', { sentAt: now, usageReportedAt: now });
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, 500);
        closing.signal.addEventListener('abort', () => {
          clearTimeout(timer);
          resolve(undefined);
        });
      });
    }
  };
  const sending = send();
  return {
    async close() {
      closing.abort();
      await sending;
    },
  };
}
