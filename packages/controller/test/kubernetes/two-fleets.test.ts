// Two fleets with different classes in one cluster. The fleet `all` also takes Services without a class.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import {
  addNode,
  type Cluster,
  namespace,
  type RunningController,
  service,
  startCluster,
  startRunningController,
} from '../fixtures/cluster.ts';
import { eventuallyWithHeartbeats, type ServiceJson, serviceNow } from '../fixtures/service-status.ts';

const [DEFAULT, EDGE] = ['weir.dev/weir', 'weir.dev/edge'];
const ALL = { loadBalancerClass: DEFAULT, classless: true };
const CLASSED = { loadBalancerClass: EDGE, classless: false };

describe('two fleets', requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'), () => {
  let cluster: Cluster;
  const now = (name: string): Promise<ServiceJson> => serviceNow(cluster, 'both', name);
  const served = (running: RunningController, name: string): Promise<ServiceJson> =>
    eventuallyWithHeartbeats(running, async () => {
      const found = await now(name);
      assert.equal(found.status.loadBalancer.ingress?.[0]?.ip, '10.1.0.1');
      return found;
    });
  const classed = (name: string, port: number): object => {
    const plain = service(name, 'both', port) as { readonly spec: object };
    return { ...plain, spec: { ...plain.spec, loadBalancerClass: EDGE } };
  };

  before(async () => {
    cluster = await startCluster();
    await addNode(cluster, 'a', '10.1.0.1');
    await cluster.apply(namespace('both'));
  });
  after(() => cluster?.[Symbol.asyncDispose]());

  test('keep the status of the other fleet, and each removes only its own status', async () => {
    await using all = startRunningController(cluster, { serviceClass: ALL });
    await using edge = startRunningController(cluster, { serviceClass: CLASSED });
    await cluster.apply(service('plain', 'both', 80));
    const plain = await served(all, 'plain');
    // Watch events arrive in order, so the fleet `all` has seen the Service `edge` when `after` is served.
    await cluster.apply(classed('edge', 81));
    const theirs = await served(edge, 'edge');
    await cluster.apply(service('after', 'both', 82));
    await served(all, 'after');
    assert.deepEqual(await now('plain'), plain);
    assert.deepEqual(await now('edge'), theirs);
    const { store, fleet } = all;
    await all[Symbol.asyncDispose]();
    await using _less = startRunningController(cluster, { store, fleet, serviceClass: { ...ALL, classless: false } });
    await eventually(async () => assert.deepEqual((await now('plain')).status, { loadBalancer: {} }), {
      timeoutMs: 30_000,
    });
    assert.deepEqual(await now('edge'), theirs);
  });
});
