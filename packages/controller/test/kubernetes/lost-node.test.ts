// A node whose proxy is silent for minutes: API server and Redis are real, and the test advances the controller's clock.
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { DEFAULT_FLEET_SETTINGS } from '@weir/model';
import { ManualClock, silentLogger, systemClock } from '@weir/runtime';
import { openRedisStore, type Store } from '@weir/store';
import { eventually as eventuallyWithin } from '@weir/testkit';
import { requireProgram, startRedis } from '@weir/tools';
import { startKubernetesController } from '../../src/controller/kubernetes-controller.ts';
import { KubeApi } from '../../src/kubernetes/kube-api.ts';
import type { LeaseSpec } from '../../src/leader/leader-election.ts';
import { addNode, type Cluster, keepSendingHeartbeats, namespace, service, startCluster } from '../fixtures/cluster.ts';

const FLEET = 'given-up';
const NODES = ['a', 'b', 'c'];
const ADDRESSES = NODES.map((_, index) => `10.1.0.${index + 1}`);

const eventually = <T>(assertion: () => Promise<T>): Promise<T> => eventuallyWithin(assertion, { timeoutMs: 60_000 });

const requirement = requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl', 'redis-server');

describe('a node whose proxy is silent', { ...requirement, timeout: 180_000 }, () => {
  test('loses its address at once, new Services after 30 s, and its Services to another node after five minutes', async (context) => {
    await using cluster = await startCluster();
    await using redis = await startRedis();
    const store = await openRedisStore({ url: redis.url, fleet: FLEET, log: silentLogger(), clock: systemClock });
    context.after(() => store.close());
    for (const [index, name] of NODES.entries()) await addNode(cluster, name, ADDRESSES[index] ?? '');
    await cluster.apply(namespace('shop'), service('web', 'shop', 80));
    const time = startWithManualTime(context, { cluster, store });
    let liveNodes = NODES;
    keepSendingHeartbeats(context, store, () => liveNodes);
    const served = (name: string, addresses: readonly string[]): Promise<void> =>
      time.passUntil(async () => assert.deepEqual(await addressesOf(cluster, name), addresses));

    const two = await time.passUntil(async () => {
      const addresses = await addressesOf(cluster, 'web');
      assert.equal(addresses.length, 2);
      return addresses;
    });
    await time.pass(GRACE_SECONDS);
    const [lost = '', kept = ''] = two;
    const silent = NODES[ADDRESSES.indexOf(lost)] ?? '';
    const others = ADDRESSES.filter((address) => address !== lost);

    liveNodes = NODES.filter((name) => name !== silent);
    // Redis keeps a heartbeat for 3 s of real time.
    await eventually(async () => assert.ok(!(await store.heartbeats.list()).some(({ node }) => node === silent)));
    const since = time.seconds();
    await served('web', [kept]);
    await time.pass(32);
    await cluster.apply(service('late', 'shop', 81));
    await served('late', others);
    await time.pass(295 - (time.seconds() - since));
    assert.ok(time.seconds() - since < 300);
    assert.deepEqual(await addressesOf(cluster, 'web'), [kept], 'a node may reboot within five minutes');
    await time.pass(10);
    await served('web', others);
    assert.ok(time.seconds() - since < 330);

    liveNodes = NODES;
    await time.pass(30);
    await cluster.apply(service('marker', 'shop', 82));
    await time.passUntil(async () => assert.equal((await addressesOf(cluster, 'marker')).length, 2));
    for (const name of ['web', 'late']) assert.deepEqual(await addressesOf(cluster, name), others);
  });
});

const STEP_SECONDS = 2;

/** How many seconds to wait at the start: longer than the grace period in which a new leader does not count missing heartbeats. */
const GRACE_SECONDS = 15;

interface ManualTime {
  /** Returns the time of the monotonic clock in seconds. */
  seconds(): number;
  pass(seconds: number): Promise<void>;
  /** Advances the clock until the assertion holds. */
  passUntil<T>(assertion: () => Promise<T>): Promise<T>;
}

/** Starts a controller whose clock advances only as fast as the controller renews its Lease, so that the controller stays the leader. */
function startWithManualTime(context: TestContext, { cluster, store }: { cluster: Cluster; store: Store }): ManualTime {
  const { kubeConfig } = cluster;
  const [clock, log, where] = [new ManualClock(Date.now()), silentLogger(), 'weir-system'];
  const trust = { kind: 'pods', serviceCidrs: ['10.96.0.0/16'] } as const;
  const settings = { ...DEFAULT_FLEET_SETTINGS, classless: true, trust };
  const controller = startKubernetesController({
    kubeConfig,
    store,
    settings,
    fleet: FLEET,
    namespace: where,
    clock,
    log,
  });
  const api = new KubeApi(kubeConfig);
  const path = `/apis/coordination.k8s.io/v1/namespaces/${where}/leases/weir-controller-${FLEET}`;
  const renewed = async (): Promise<void> => {
    const { spec } = (await api.request({ method: 'GET', path })) as { spec?: LeaseSpec };
    assert.ok(clock.now() - Date.parse(spec?.renewTime ?? '') < RENEWED_WITHIN_MS);
  };
  const step = async (): Promise<void> => {
    await clock.advance(STEP_SECONDS * 1_000);
    // The renewal may be due only in the next step.
    await eventuallyWithin(renewed, { timeoutMs: 1_000 }).catch(() => undefined);
  };
  context.after(async () => {
    await controller.close();
    api.close();
  });
  return {
    seconds: () => clock.monotonic() / 1_000,
    async pass(seconds) {
      for (let left = seconds; left > 0; left -= STEP_SECONDS) await step();
    },
    passUntil: (assertion) =>
      eventually(async () => {
        await step();
        return assertion();
      }),
  };
}

/**
 * How old the last renewal may be before the clock advances. A leader renews its Lease every 2 s, and steps down after 10 s without a
 * renewal.
 */
const RENEWED_WITHIN_MS = 4_000;

async function addressesOf(cluster: Cluster, name: string): Promise<string[]> {
  const output = '-o=jsonpath={.status.loadBalancer.ingress[*].ip}';
  const text = await cluster.kubectl('get', 'service', name, '-n', 'shop', output);
  return text === '' ? [] : text.split(' ');
}
