// A limit that refuses clients, on a real API server, with recorded usage and a manual clock.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countersFrom, minuteOf } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { requireProgram } from '@weir/tools';
import { addNode, namespace, sendHeartbeat, startCluster, startRunningController } from '../fixtures/cluster.ts';

interface ServiceJson {
  readonly metadata: { readonly uid: string };
  readonly status: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly message: string;
    }[];
  };
}

/** A Service on one node with an endpoint, which has no other reason to be degraded. */
const WEB: readonly object[] = [
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'shop', annotations: { 'weir.dev/nodes': '1' } },
    spec: { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false, ports: [{ port: 80 }] },
  },
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ port: 8080 }],
    endpoints: [{ addresses: ['198.51.100.7'] }],
  },
];

/** The time of each step. Between two steps, kubectl takes long enough for the controller to renew its Lease. */
const STEP_MS = 4_000;

test('a Service says on a real API server which limit refuses clients, until five quiet minutes have passed', {
  ...requireProgram('etcd', 'kube-apiserver', 'kubectl'),
  timeout: 180_000,
}, async () => {
  await using cluster = await startCluster();
  await addNode(cluster, 'node-1', '192.0.2.1');
  await cluster.apply(
    namespace('shop', { team: 'shop' }),
    {
      apiVersion: 'weir.dev/v1alpha1',
      kind: 'TenantPolicy',
      metadata: { name: 'shops' },
      spec: {
        namespaceSelector: { matchLabels: { team: 'shop' } },
        limits: { connections: 40 },
        allowedEndpointCIDRs: ['198.51.100.0/24'],
      },
    },
    ...WEB,
  );
  const { uid } = (await cluster.get<ServiceJson>('service', 'web', '-n', 'shop')).metadata;
  const clock = new ManualClock(Date.now());
  await using running = startRunningController(cluster, { clock });
  const { store } = running;
  const degraded = async (): Promise<string | undefined> => {
    const { conditions } = (await cluster.get<ServiceJson>('service', 'web', '-n', 'shop')).status;
    const found = conditions?.find(({ type, reason }) => type === 'weir.dev/Degraded' && reason === 'OverLimit');
    return found === undefined ? undefined : `${found.status}: ${found.message}`;
  };
  const passUntil = async (maxMs: number, isDone: () => Promise<boolean>): Promise<void> => {
    const startedAt = clock.now();
    while (!(await isDone())) {
      assert.ok(clock.now() - startedAt < maxMs, `still not after ${maxMs} ms`);
      await sendHeartbeat(store, 'node-1', { sentAt: clock.now(), usageReportedAt: clock.now() });
      await clock.advance(STEP_MS);
    }
  };
  await passUntil(120_000, async () => {
    const { conditions } = (await cluster.get<ServiceJson>('service', 'web', '-n', 'shop')).status;
    return conditions?.some(({ type, status }) => type === 'weir.dev/Programmed' && status === 'True') === true;
  });
  assert.equal(await degraded(), undefined);

  const refusedAt = minuteOf(clock.now());
  const counters = countersFrom([0, 0, 900], { 'connection-limit': 10 });
  const slot = { service: uid, tenant: 'shop', namespace: 'shop', name: 'web' };
  const points = [{ minute: refusedAt, counters }];
  await store.usage.flush({ node: 'node-1', life: 1, slots: [{ ...slot, points }] });
  const lease = { owner: { kind: 'tenant', name: 'shop' }, resource: 'connections' } as const;
  const claim = { demand: 45, weight: 1, floor: 40, used: 0 };
  const requests = [{ ...lease, limit: 40, claim, held: 40, wanted: 40 }];
  await store.leases.exchange({ node: 'node-1', life: 1, sequence: 1, mayRaise: true, requests });
  await passUntil(120_000, async () => (await degraded()) !== undefined);
  const expected =
    /limits refuse clients \(connection-limit\): in the minute \S+Z, 10 connections were refused and 900 accepted; the limit is connections 40 in TenantPolicy "shops" \(40 open\); let clients/;
  assert.match((await degraded()) ?? '', expected);
  assert.match((await degraded()) ?? '', /^True: /);
  const description = await cluster.kubectl('describe', 'service', 'web', '-n', 'shop');
  assert.match(description, new RegExp(`Warning +OverLimit .*${expected.source}`));

  await passUntil(480_000, async () => (await degraded()) === undefined);
  const quietMinutes = (clock.now() - (refusedAt + 1) * 60_000) / 60_000;
  assert.ok(quietMinutes >= 5 && quietMinutes < 6, `ended after ${quietMinutes} quiet minutes`);
});
