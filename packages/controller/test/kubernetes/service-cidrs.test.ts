// Cluster IPs, which the controller reads from the API server, are never endpoints, even if a policy allows them.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { entriesOf } from '@weir/model';
import { createLogger, ManualClock } from '@weir/runtime';
import { eventually as eventuallyWithin } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import type { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { KubeApiError } from '../../src/kubernetes/kube-api-error.ts';
import { KubernetesSource } from '../../src/watch/kubernetes/kubernetes-source.ts';
import {
  addNode,
  type Cluster,
  namespace,
  type RunningController,
  service,
  startCluster,
  startRunningController,
} from '../fixtures/cluster.ts';

const eventually = <T>(assertion: () => T | Promise<T>): Promise<T> =>
  eventuallyWithin(assertion, { timeoutMs: 30_000, intervalMs: 100 });

const SLICE = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' };
const sliceOf = (addresses: readonly string[]): object => ({
  ...SLICE,
  metadata: { name: 'web', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web' } },
  ports: [{ name: '', port: 443 }],
  endpoints: addresses.map((address) => ({ addresses: [address] })),
});
const WIDE = {
  apiVersion: 'weir.dev/v1alpha1',
  kind: 'TenantPolicy',
  metadata: { name: 'wide' },
  spec: { namespaceSelector: {}, allowedEndpointCIDRs: ['10.0.0.0/8'] },
};

describe('a controller without WEIR_SERVICE_CIDRS', {
  ...requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'),
}, () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await startCluster();
    await addNode(cluster, 'a', '10.1.0.1');
  });
  after(() => cluster?.[Symbol.asyncDispose]());

  const endpointsOf = async ({ store }: RunningController): Promise<readonly string[]> => {
    const copy = await store.table.read();
    const entries = copy === undefined ? [] : entriesOf(copy.table, 'endpoints');
    return entries.flatMap(({ endpoints }) => endpoints.map(({ address }) => address)).sort();
  };

  test('refuses endpoints in the ServiceCIDRs, including those added later', async () => {
    const web = service('web', 'shop', 443) as { spec: object };
    // In the slice, the first address is the cluster IP of `default/kubernetes`; the second address is in the same range but unused.
    await cluster.apply(namespace('shop'), WIDE, { ...web, spec: { ...web.spec, selector: undefined } });
    await cluster.apply(sliceOf(['10.96.0.1', '10.96.77.7', '10.99.0.1', '10.200.0.1']));
    await using running = startRunningController(cluster, { serviceCidrs: [] });
    await eventually(async () => assert.deepEqual(await endpointsOf(running), ['10.200.0.1', '10.99.0.1']));
    const problems = running.controller.problems().filter(({ code }) => code === 'EndpointForbidden');
    assert.match(problems.map(({ message }) => message).join(), /10\.96\.0\.1.* in the range of the cluster IPs/);
    const kind = { apiVersion: 'networking.k8s.io/v1', kind: 'ServiceCIDR' };
    await cluster.apply({ ...kind, metadata: { name: 'more' }, spec: { cidrs: ['10.99.0.0/24'] } });
    await eventually(async () => assert.deepEqual(await endpointsOf(running), ['10.200.0.1']));
  });

  test('refuses the cluster IPs of Services and reports the missing permission if ServiceCIDRs are forbidden', async () => {
    const { rules } = await cluster.get<{ rules: readonly { readonly resources: readonly string[] }[] }>(
      'clusterrole',
      'weir-controller',
    );
    const metadata = { name: 'weir-controller' };
    const left = rules.filter(({ resources }) => !resources.includes('servicecidrs'));
    assert.ok(left.length < rules.length);
    await cluster.apply({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata, rules: left });
    await using running = startRunningController(cluster, { serviceCidrs: [] });
    await eventually(async () => assert.ok((await endpointsOf(running)).includes('10.200.0.1')));
    assert.ok(!(await endpointsOf(running)).includes('10.96.0.1'));
    await eventually(() => {
      const forbidden = running.controller.problems().filter(({ code }) => code === 'Forbidden');
      assert.deepEqual(
        forbidden.map(({ subject }) => subject),
        ['servicecidrs.networking.k8s.io'],
      );
      assert.match(
        forbidden[0]?.message ?? '',
        /until the controller can list [^ ]+, endpoints are checked only against the cluster IP ranges in WEIR_SERVICE_CIDRS/,
      );
    });
  });
});

test('reports and logs nothing about an API server without ServiceCIDR', async (context) => {
  const logged: string[] = [];
  const clock = new ManualClock();
  let requests = 0;
  const api = {
    server: 'https://api.test',
    async request({ path }: { readonly path: string }) {
      if (!path.endsWith('/servicecidrs')) return { metadata: { resourceVersion: '1' }, items: [] };
      requests += 1;
      throw new KubeApiError('NOT_FOUND', `GET ${path}: the server could not find the requested resource`);
    },
    async watch({ signal, onOpen }: { readonly signal: AbortSignal; onOpen(): void }) {
      onOpen();
      if (!signal.aborted) await once(signal, 'abort');
    },
  };
  const log = createLogger({ name: 'test', level: 'debug', destination: { write: (line) => void logged.push(line) } });
  const source = new KubernetesSource({ api: api as unknown as KubeApi, clock, log });
  context.after(() => source.close());
  await source.synced(context.signal);
  for (let minute = 0; minute < 5; minute += 1) await clock.advance(60_000);
  assert.ok(requests > 1, 'the controller tries again, since the API server may be upgraded');
  assert.deepEqual([source.snapshot().problems, source.snapshot().serviceCidrs, logged], [[], [], []]);
});
