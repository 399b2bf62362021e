// A paused leader (a migrated virtual machine, a swapping node) does not know about the pause when it continues.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { entriesOf } from '@weir/model';
import { silentLogger, systemClock } from '@weir/runtime';
import { openRedisStore, type Store, type SuspensionState } from '@weir/store';
import { eventually as eventuallyWithin, type ProxiedRequest } from '@weir/testkit';
import { requireProgram, startRedis } from '@weir/tools';
import {
  addNode,
  type Cluster,
  keepSendingHeartbeats,
  namespace,
  service,
  startCluster,
  startProxiedApi,
} from '../fixtures/cluster.ts';
import { startControllerProcess } from '../fixtures/controller-process.ts';

/** More Services than the controller writes at the same time, so that the controller is paused between writes. */
const SERVICES = Array.from({ length: 20 }, (_, index) => `s${index}`);
const WRITERS = 8;
const FLEET = 'paused';

const eventually = <T>(assertion: () => Promise<T>): Promise<T> => eventuallyWithin(assertion, { timeoutMs: 60_000 });

describe(
  'two controllers',
  requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl', 'redis-server'),
  () => {
    test('a leader that was paused during a takeover writes nothing, steps down, and may lead again', async (context) => {
      await using cluster = await startCluster();
      await using redis = await startRedis();
      await using detour = await startProxiedApi(cluster);
      const { proxy } = detour;
      const store = await openRedisStore({ url: redis.url, fleet: FLEET, log: silentLogger(), clock: systemClock });
      context.after(() => store.close());
      await addNode(cluster, 'a', '10.1.0.1');
      await cluster.apply(namespace('shop'), suspension('stop'));
      const common = { redisUrl: redis.url, fleet: FLEET };
      await using first = await startControllerProcess({ ...common, name: 'first', kubeConfig: detour.kubeConfig });
      await eventually(async () => {
        assert.ok(await first.isLeader());
        assert.deepEqual(suspendedNames(await store.suspensions.read()), ['stop']);
      });
      await using second = await startControllerProcess({ ...common, name: 'second', kubeConfig: cluster.kubeConfig });
      await eventually(async () => assert.ok(await second.isReady()));

      // The leader is stopped between status writes, while the responses to its requests are held back.
      const held = Promise.withResolvers<void>();
      proxy.intercept(async (request) => {
        if (isStatusWrite(request)) await held.promise;
        return 'forward';
      });
      await cluster.apply(...SERVICES.map((name, index) => service(name, 'shop', 200 + index)));
      await eventually(async () => {
        assert.deepEqual(await served(store), [...SERVICES].sort());
        assert.ok(proxy.requests.filter(isStatusWrite).length >= WRITERS);
      });
      first.process.signal('SIGSTOP');
      await cluster.kubectl('delete', 'service', '-n', 'shop', 's0');
      await cluster.kubectl('delete', 'suspension', 'stop');
      await cluster.apply(service('late', 'shop', 300));
      keepSendingHeartbeats(context, store, () => ['a']);
      await eventually(async () => assert.ok(await second.isLeader()));
      const names = [...SERVICES.slice(1), 'late'].sort();
      const before = await eventually(async () => {
        assert.deepEqual(await served(store), names);
        assert.deepEqual(suspendedNames(await store.suspensions.read()), []);
        const written = await everythingWritten(cluster, store);
        assert.deepEqual(written.programmed, names);
        // Each Service gets its two Events after its conditions, so all writes are done when every Service has both Events.
        assert.deepEqual(await servicesWithEvent(cluster, 'Programmed'), names);
        assert.deepEqual(await servicesWithEvent(cluster, 'NoReadyEndpoints'), names);
        return { ...written, objects: (await everythingWritten(cluster, store)).objects };
      });

      const requestsBefore = proxy.requests.length;
      held.resolve();
      first.process.signal('SIGCONT');
      const since = () => proxy.requests.slice(requestsBefore);
      await eventually(async () => {
        assert.equal(await first.isLeader(), false);
        assert.equal(await first.metric('weir_controller_leader_changes_total'), 2);
        const leaseReads = since().filter(({ path }) => path.includes('/leases/'));
        assert.ok(leaseReads.length >= 2, 'the paused leader reads the Lease again');
      });
      assert.deepEqual(
        since().flatMap(({ method, path }) => (method === 'GET' ? [] : [`${method} ${path}`])),
        [],
      );
      assert.deepEqual(await everythingWritten(cluster, store), before);
      assert.equal(await first.metric('weir_controller_leader'), 0);
      assert.equal(await second.metric('weir_controller_leader'), 1);

      await second.process.stop();
      await cluster.apply(service('later', 'shop', 301));
      await eventually(async () => {
        assert.deepEqual(await served(store), [...names, 'later'].sort());
        assert.deepEqual((await everythingWritten(cluster, store)).programmed, [...names, 'later'].sort());
      });
    });
  },
);

const isStatusWrite = ({ method, path }: ProxiedRequest): boolean => method === 'PATCH' && path.endsWith('/status');

const suspendedNames = ({ suspensions }: SuspensionState): string[] => suspensions.map(({ name }) => name);

const suspension = (name: string): object => ({
  apiVersion: 'weir.dev/v1alpha1',
  kind: 'Suspension',
  metadata: { name },
  spec: { target: { type: 'Tenant', tenant: 'nobody' } },
});

async function served(store: Store): Promise<string[]> {
  const copy = await store.table.read();
  return copy === undefined
    ? []
    : entriesOf(copy.table, 'service')
        .map(({ name }) => name)
        .sort();
}

interface Written {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

interface EventJson {
  readonly reason: string;
  readonly regarding: { readonly kind: string; readonly name: string };
}

/** Returns the names of the existing Services that have an Event with this reason. */
async function servicesWithEvent(cluster: Cluster, reason: string): Promise<string[]> {
  const { items } = await cluster.get<{ items: readonly EventJson[] }>('events.events.k8s.io', '-n', 'shop');
  const events = items.filter(
    (each) => each.reason === reason && each.regarding.kind === 'Service' && each.regarding.name !== 's0',
  );
  return [...new Set(events.map(({ regarding }) => regarding.name))].sort();
}

/** Returns the versions of all objects that a controller writes. */
async function everythingWritten(cluster: Cluster, store: Store) {
  const { items } = await cluster.get<{ items: readonly Written[] }>(
    'services,events.events.k8s.io,tenantusages,tenantpolicies,suspensions',
    '-A',
  );
  const isProgrammed = ({ status }: Written): boolean =>
    (status?.conditions ?? []).some((each) => each.type === 'weir.dev/Programmed' && each.status === 'True');
  const { sequence } = await store.suspensions.read();
  return {
    objects: items.map(({ kind, metadata }) => `${kind} ${metadata.name} ${metadata.resourceVersion}`).sort(),
    programmed: items
      .filter(isProgrammed)
      .map(({ metadata }) => metadata.name)
      .sort(),
    table: await store.table.meta(),
    suspensionSequence: sequence,
  };
}
