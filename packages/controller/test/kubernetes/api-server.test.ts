import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { entriesOf } from '@weir/model';
import { silentLogger, systemClock } from '@weir/runtime';
import { eventually } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { EventWriter } from '../../src/status/event-writer.ts';
import {
  addNode,
  type Cluster,
  namespace,
  sendHeartbeat,
  service,
  startCluster,
  startRunningController,
} from '../fixtures/cluster.ts';
import { conditionsOf, eventuallyWithHeartbeats, serviceNow } from '../fixtures/service-status.ts';

interface EventList {
  readonly items: readonly {
    readonly reason: string;
    readonly note: string;
    readonly series?: { readonly count: number };
    readonly regarding: { readonly name: string };
  }[];
}

interface ServiceList {
  readonly items: readonly {
    readonly metadata: { readonly namespace: string };
    readonly spec: { readonly type: string };
  }[];
}

describe(
  'a controller on a real API server',
  requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'),
  () => {
    let cluster: Cluster;
    const eventsOf = async (namespace: string, name: string): Promise<string[]> => {
      const { items } = await cluster.get<EventList>('events.v1.events.k8s.io', '-n', namespace);
      return items.filter((each) => each.regarding.name === name).map((each) => `${each.reason}: ${each.note}`);
    };
    const namespacesOfLoadBalancers = async (): Promise<string[]> => {
      const { items } = await cluster.get<ServiceList>('services', '-A');
      return items.flatMap(({ metadata, spec }) => (spec.type === 'LoadBalancer' ? [metadata.namespace] : []));
    };
    before(async () => {
      cluster = await startCluster();
      await addNode(cluster, 'a', '10.1.0.1');
    });
    after(() => cluster?.[Symbol.asyncDispose]());

    test('writes address, ports, conditions and an Event of a Service once', async () => {
      await using running = startRunningController(cluster);
      await cluster.apply(namespace('first'), service('web', 'first', 80));
      const web = await eventuallyWithHeartbeats(running, async () => {
        const now = await serviceNow(cluster, 'first', 'web');
        const ports = [{ port: 80, protocol: 'TCP' }];
        assert.deepEqual(now.status.loadBalancer.ingress, [{ ip: '10.1.0.1', ipMode: 'Proxy', ports }]);
        return now;
      });
      assert.deepEqual(conditionsOf(web), [
        'Accepted True Accepted',
        'Degraded True NoReadyEndpoints',
        'Programmed True Programmed',
      ]);
      await eventuallyWithHeartbeats(running, async () => {
        const events = await eventsOf('first', 'web');
        const programmed =
          'Programmed: ports are allocated at 10.1.0.1, but clients are refused while no endpoint is ready';
        assert.ok(events.includes(programmed), events.join('\n'));
      });
      await cluster.apply(service('api', 'first', 81));
      await eventuallyWithHeartbeats(running, async () =>
        assert.ok(conditionsOf(await serviceNow(cluster, 'first', 'api')).includes('Programmed True Programmed')),
      );
      assert.equal((await serviceNow(cluster, 'first', 'web')).metadata.resourceVersion, web.metadata.resourceVersion);
      await cluster.kubectl('delete', 'namespace', 'first', '--wait=false');
    });

    test('reports the limit to a Service over the quota, and serves it when another is deleted', async () => {
      const policy = {
        apiVersion: 'weir.dev/v1alpha1',
        kind: 'TenantPolicy',
        metadata: { name: 'small' },
        spec: { namespaceSelector: { matchLabels: { size: 'small' } }, limits: { services: 1 } },
      };
      await cluster.apply(policy, namespace('small', { size: 'small' }), service('one', 'small', 90));
      await using running = startRunningController(cluster);
      await eventuallyWithHeartbeats(running, async () =>
        assert.ok(conditionsOf(await serviceNow(cluster, 'small', 'one')).includes('Programmed True Programmed')),
      );
      await cluster.apply(service('two', 'small', 91));
      await eventuallyWithHeartbeats(running, async () => {
        const now = await serviceNow(cluster, 'small', 'two');
        assert.deepEqual(conditionsOf(now), ['Accepted False QuotaExceeded', 'Programmed False NotAccepted']);
        assert.equal(now.status.loadBalancer.ingress, undefined);
        const events = await eventsOf('small', 'two');
        assert.ok(
          events.some((each) => /^QuotaExceeded: .*"small".*one/.test(each)),
          events.join('\n'),
        );
      });
      await cluster.kubectl('delete', 'service', '-n', 'small', 'one');
      await eventuallyWithHeartbeats(running, async () =>
        assert.ok(conditionsOf(await serviceNow(cluster, 'small', 'two')).includes('Programmed True Programmed')),
      );
      await cluster.kubectl('delete', 'namespace/small', 'tenantpolicy/small', '--wait=false');
    });

    test('removes its status from a Service that it no longer serves', async () => {
      await using running = startRunningController(cluster);
      await cluster.apply(
        namespace('leaving'),
        service('ignored', 'leaving', 100),
        service('internal', 'leaving', 101),
      );
      for (const name of ['ignored', 'internal']) {
        await eventuallyWithHeartbeats(running, async () =>
          assert.ok(conditionsOf(await serviceNow(cluster, 'leaving', name)).includes('Programmed True Programmed')),
        );
      }
      await cluster.kubectl('annotate', 'service', '-n', 'leaving', 'ignored', 'weir.dev/ignore=true');
      await cluster.kubectl('patch', 'service', '-n', 'leaving', 'internal', '-p', '{"spec": {"type": "ClusterIP"}}');
      for (const name of ['ignored', 'internal']) {
        await eventuallyWithHeartbeats(running, async () =>
          assert.deepEqual((await serviceNow(cluster, 'leaving', name)).status, { loadBalancer: {} }),
        );
      }
      await cluster.kubectl('delete', 'namespace', 'leaving', '--wait=false');
    });

    test('uses only endpoints that are pods', async () => {
      await using running = startRunningController(cluster);
      const pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'p', namespace: 'pods', labels: { app: 'web' } },
        spec: { nodeName: 'a', containers: [{ name: 'c', image: 'none' }] },
      };
      const slice = {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name: 'by-hand', namespace: 'pods', labels: { 'kubernetes.io/service-name': 'web' } },
        addressType: 'IPv4',
        ports: [{ name: '', port: 80 }],
        endpoints: [{ addresses: ['10.9.9.9'] }],
      };
      await cluster.apply(namespace('pods'), service('web', 'pods', 110), slice);
      await eventually(() => cluster.kubectl('get', 'serviceaccount', '-n', 'pods', 'default'));
      await cluster.apply(pod);
      const ready = {
        podIP: '10.244.0.7',
        podIPs: [{ ip: '10.244.0.7' }],
        conditions: [{ type: 'Ready', status: 'True' }],
      };
      const patch = JSON.stringify({ status: { phase: 'Running', ...ready } });
      await cluster.kubectl('patch', 'pod', '-n', 'pods', 'p', '--subresource=status', '--type=merge', '-p', patch);
      await eventuallyWithHeartbeats(running, async () => {
        const copy = await running.store.table.read();
        const endpoints = copy && entriesOf(copy.table, 'endpoints').flatMap((each) => each.endpoints);
        assert.deepEqual(
          endpoints?.map((each) => each.address),
          ['10.244.0.7'],
        );
        assert.ok(conditionsOf(await serviceNow(cluster, 'pods', 'web')).includes('Accepted False EndpointForbidden'));
      });
      // Deletes the Service first, because the namespace is deleted slowly, and its pods would change the tables of later tests.
      await cluster.kubectl('delete', 'service', '-n', 'pods', 'web');
      await cluster.kubectl('delete', 'namespace', 'pods', '--wait=false');
    });

    test('counts a repeated Event, and writes a new Event for another note', async () => {
      await cluster.apply(namespace('news'));
      const api = new KubeApi(cluster.kubeConfig);
      const options = { api, clock: systemClock, log: silentLogger(), instance: 'test' };
      const event = {
        name: 'weir.u.quotaexceeded.1',
        namespace: 'news',
        regarding: { apiVersion: 'v1', kind: 'Service', namespace: 'news', name: 'web', uid: 'u' },
        type: 'Warning',
        reason: 'QuotaExceeded',
        note: '2 of 2 load balancers are in use',
      } as const;
      const other = { ...event, name: 'weir.u.quotaexceeded.2', note: '3 of 3 load balancers are in use' };
      await new EventWriter(options).write({
        newEvents: [event, other],
        persistentEvents: [],
        currentEvents: () => [],
      });
      await new EventWriter(options).write({ newEvents: [event], persistentEvents: [other], currentEvents: () => [] });
      const { items } = await cluster.get<EventList>('events.v1.events.k8s.io', '-n', 'news');
      assert.deepEqual(items.map(({ note, series }) => [note, series?.count]).sort(), [
        ['2 of 2 load balancers are in use', 2],
        ['3 of 3 load balancers are in use', undefined],
      ]);
      api.close();
      await cluster.kubectl('delete', 'namespace', 'news', '--wait=false');
    });

    test('leads alone, and the other controller takes over its table', async () => {
      await cluster.apply(namespace('two'), service('web', 'two', 120));
      // Every controller serves the Services of all namespaces, and the namespaces of earlier tests are still being deleted.
      await eventually(async () => assert.deepEqual(await namespacesOfLoadBalancers(), ['two']));
      await using first = startRunningController(cluster, { fleet: 'two' });
      await eventuallyWithHeartbeats(first, async () => assert.ok(first.controller.isLeader));
      await first.controller.idle();
      await using second = startRunningController(cluster, { fleet: 'two', store: first.store });
      await eventually(() => assert.ok(second.controller.isSynced));
      await second.controller.idle();
      assert.deepEqual([first.controller.isLeader, second.controller.isLeader], [true, false]);
      const before = await first.store.table.meta();
      assert.equal(second.controller.translation(), undefined);
      await first[Symbol.asyncDispose]();
      await eventuallyWithHeartbeats(second, async () => assert.ok(second.controller.translation()));
      const meta = await second.store.table.meta();
      assert.deepEqual({ ...meta, leader: 0 }, { ...before, leader: 0 });
      await cluster.kubectl('delete', 'namespace', 'two', '--wait=false');
    });

    test('keeps the table over a restart of the API server, and serves a new Service after it', async () => {
      await cluster.apply(namespace('restart'), service('web', 'restart', 130));
      await using running = startRunningController(cluster);
      await eventuallyWithHeartbeats(running, async () =>
        assert.ok(conditionsOf(await serviceNow(cluster, 'restart', 'web')).includes('Programmed True Programmed')),
      );
      const before = await running.store.table.meta();
      await cluster.plane.stopApiServer();
      await sendHeartbeat(running.store, 'a');
      await cluster.plane.startApiServer();
      await cluster.apply(service('api', 'restart', 131));
      await eventuallyWithHeartbeats(running, async () =>
        assert.ok(conditionsOf(await serviceNow(cluster, 'restart', 'api')).includes('Programmed True Programmed')),
      );
      const meta = await running.store.table.meta();
      assert.equal(meta?.epoch, before?.epoch);
      assert.ok(conditionsOf(await serviceNow(cluster, 'restart', 'web')).includes('Programmed True Programmed'));
      await cluster.kubectl('delete', 'namespace', 'restart', '--wait=false');
    });

    test('reports a missing or forbidden kind with the command that helps, and recovers', async () => {
      await cluster.apply(namespace('gaps'), service('web', 'gaps', 140));
      const crd = 'customresourcedefinition/tenantpolicies.weir.dev';
      const saved = await cluster.get<{ metadata: object; spec: object }>(crd);
      await cluster.kubectl('delete', crd);
      await using running = startRunningController(cluster);
      const problems = (code: string): string[] =>
        running.controller
          .problems()
          .flatMap((each) => (each.code === code ? [`${each.subject}: ${each.message}`] : []));
      await eventuallyWithHeartbeats(running, async () => {
        assert.match(problems('MissingCustomResource')[0] ?? '', /^tenantpolicies.weir.dev: .*kubectl apply -f charts/);
        assert.ok(conditionsOf(await serviceNow(cluster, 'gaps', 'web')).includes('Programmed True Programmed'));
      });
      await cluster.apply({
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: 'tenantpolicies.weir.dev' },
        spec: saved.spec,
      });
      const binding = 'clusterrolebinding/weir-controller';
      const rights = await cluster.get<{ metadata: object; roleRef: object; subjects: object }>(binding);
      await cluster.kubectl('delete', binding);
      await using other = startRunningController(cluster);
      await eventually(() => {
        const forbidden = other.controller.problems().filter((each) => each.code === 'Forbidden');
        assert.equal(forbidden.length, 8);
        assert.match(
          forbidden.map((each) => each.message).join('\n'),
          /cannot list resource "services".*kubectl auth can-i list services/,
        );
      });
      assert.equal(await other.store.table.meta(), undefined, 'the controller publishes no empty table');
      await cluster.apply({ ...rights, metadata: { name: 'weir-controller' } });
      await eventually(async () => assert.ok((await other.store.table.read())?.table), { timeoutMs: 30_000 });
      await eventually(() => assert.deepEqual(problems('MissingCustomResource'), []), { timeoutMs: 30_000 });
    });
  },
);
