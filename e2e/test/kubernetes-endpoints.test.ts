// Tests which pods and addresses the clients of a Service reach while a user changes the Service with kubectl on a real API server.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import { insideNamespace, requireProgram } from '@weir/tools';
import { ALL_ADDRESSES, FOREIGN_ADDRESS, NODES, nodeAddress, podAddress } from '../src/addresses.ts';
import { assertEchoed, assertRefused } from '../src/client-assertions.ts';
import { type Fleet, startFleet } from '../src/fleet.ts';
import { endpointSlice, loadBalancer, namespaceManifest, tenantPolicy } from '../src/manifests.ts';
import { Pods } from '../src/pods.ts';
import { addressesIn, conditionIn, patchService, type ServiceStatus, waitForStatus } from '../src/service-status.ts';

const ADDRESSES = NODES.map(nodeAddress);

const requirement = {
  ...requireProgram('redis', 'kubernetes'),
  ...insideNamespace({ addresses: [...ALL_ADDRESSES, FOREIGN_ADDRESS] }),
};

describe('a Service and its endpoints', { ...requirement, timeout: 300_000 }, () => {
  let fleet: Fleet;
  let pods: Pods;
  const kubectl = (...args: string[]): Promise<string> => fleet.cluster.kubectl(...args);
  const apply = (...objects: readonly object[]): Promise<void> => fleet.cluster.apply(...objects);
  const patch = (path: string, change: object): Promise<void> => patchService(fleet.cluster, path, change);
  const when = (path: string, isRight: (status: ServiceStatus) => boolean): Promise<ServiceStatus> =>
    waitForStatus(fleet.cluster, path, isRight);
  const degraded = (status: ServiceStatus): string => conditionIn(status, 'Degraded')?.message ?? '';

  before(async () => {
    fleet = await startFleet();
    pods = new Pods(fleet.cluster);
  });
  after(async () => {
    await pods?.close();
    await fleet?.close();
  });

  test('uses pods with different numbers of a named port, and counts an address in two slices once', async () => {
    await apply(
      namespaceManifest('slices'),
      loadBalancer('slices/web', { ports: [{ name: 'main', port: 1030, targetPort: 'main' }] }),
    );
    const first = await pods.echoForService('slices/web', { port: 8080 });
    const second = await pods.echoForService('slices/web', { port: 9090 });
    await apply(endpointSlice('slices/web', [podAddress(first.number)], { ports: [{ name: 'main', port: 8080 }] }));
    const { items } = JSON.parse(
      await kubectl('get', 'endpointslices', '-n', 'slices', '-l', 'kubernetes.io/service-name=web', '-o', 'json'),
    ) as { items: readonly unknown[] };
    assert.equal(items.length, 3);
    await eventually(
      async () => {
        await assertEchoed(ADDRESSES, 1030);
        assert.ok(first.server.received > 0 && second.server.received > 0);
      },
      { timeoutMs: 20_000 },
    );
    await eventually(async () => assert.deepEqual(await endpointsOf('slices', 'web'), { ready: 2, total: 2 }), {
      timeoutMs: 10_000,
    });
  });

  test('uses unready pods if publishNotReadyAddresses is set, and terminating pods if no pod is ready', async () => {
    await apply(
      namespaceManifest('readiness'),
      loadBalancer('readiness/web', { ports: [{ port: 1040, targetPort: 'main' }] }),
    );
    const slow = await pods.echoForService('readiness/web', { ready: false });
    const none = await when('readiness/web', (now) => addressesIn(now).length === 3);
    assert.match(degraded(none), /there is no endpoint|no endpoint is ready/);
    await assertRefused(ADDRESSES, 1040);
    await patch('readiness/web', { spec: { publishNotReadyAddresses: true } });
    await assertEchoed(ADDRESSES, 1040);
    await patch('readiness/web', { spec: { publishNotReadyAddresses: false } });
    await assertRefused(ADDRESSES, 1040);
    await slow.setReady(true);
    await assertEchoed(ADDRESSES, 1040);
    // The proxies still use a terminating pod that serves if there is no other endpoint.
    await kubectl('delete', 'pod', slow.name, '-n', 'readiness', '--wait=false');
    await eventually(async () => {
      const conditions = await kubectl(
        'get',
        'endpointslices',
        '-n',
        'readiness',
        '-o',
        'jsonpath={.items[*].endpoints[*].conditions}',
      );
      assert.match(conditions, /"ready":false,"serving":true,"terminating":true/);
    });
    await assertEchoed(ADDRESSES, 1040);
    await when('readiness/web', (now) =>
      /^no endpoint is ready: only terminating endpoints serve clients/.test(degraded(now)),
    );
    const fresh = await pods.echoForService('readiness/web');
    await eventually(
      async () => {
        const before = slow.server.received;
        const freshBefore = fresh.server.received;
        await assertEchoed(ADDRESSES, 1040);
        assert.deepEqual([slow.server.received, fresh.server.received > freshBefore], [before, true]);
      },
      { timeoutMs: 15_000 },
    );
  });

  test('without selector reaches only permitted endpoints, and never nodes or cluster IPs', async () => {
    const own = await pods.echoForService('outside/own', { namespace: 'slices' });
    const foreign = await pods.echoServerAt({ host: FOREIGN_ADDRESS, port: 8080 });
    await apply(
      namespaceManifest('outside', { team: 'outside' }),
      loadBalancer('outside/db', { selector: null, ports: [{ port: 1050 }] }),
      endpointSlice('outside/db', [FOREIGN_ADDRESS, podAddress(own.number), nodeAddress('node-1'), '10.96.0.1']),
    );
    const status = await when('outside/db', (now) => conditionIn(now, 'Accepted')?.status === 'False');
    const { reason, message = '' } = conditionIn(status, 'Accepted') ?? {};
    assert.equal(reason, 'EndpointForbidden');
    assert.match(message, new RegExp(`${FOREIGN_ADDRESS} does not belong to a pod of this namespace`));
    assert.match(message, new RegExp(`${nodeAddress('node-1')} is the address of a node`));
    assert.match(message, /10\.96\.0\.1 is in the range of the cluster IPs/);
    await assertRefused(ADDRESSES, 1050);
    await apply(tenantPolicy('outside', { allowedEndpointCIDRs: ['0.0.0.0/1', '172.20.0.0/16'] }));
    await assertEchoed(ADDRESSES, 1050);
    assert.ok(own.server.received + foreign.received > 0);
    const still = await when('outside/db', (now) => !/of a pod/.test(conditionIn(now, 'Accepted')?.message ?? ''));
    assert.match(conditionIn(still, 'Accepted')?.message ?? '', /address of a node/);
    await apply(endpointSlice('outside/db', [FOREIGN_ADDRESS]));
    await when('outside/db', (now) => conditionIn(now, 'Accepted')?.status === 'True');
    await assertEchoed(ADDRESSES, 1050);
  });

  test('reaches a pod on the host network, but neither reserved ports nor ports that Weir serves', async () => {
    await apply(
      namespaceManifest('host'),
      loadBalancer('host/agent', {
        selector: null,
        ports: ['main', 'self', 'kubelet'].map((name, i) => ({ name, port: 1055 + i })),
      }),
    );
    await pods.echoForService('host/agent', { port: 9055, hostNode: 'node-1' });
    const ports = [9055, 1055, 10_250].map((port, i) => ({ name: ['main', 'self', 'kubelet'][i] ?? '', port }));
    await apply(endpointSlice('host/agent', [nodeAddress('node-1')], { ports }));
    const status = await when('host/agent', (now) => /:10250 is/.test(conditionIn(now, 'Accepted')?.message ?? ''));
    const { reason, message = '' } = conditionIn(status, 'Accepted') ?? {};
    assert.equal(reason, 'EndpointForbidden');
    assert.match(message, new RegExp(`${nodeAddress('node-1')}:1055 is an address and port that Weir itself serves`));
    assert.match(message, new RegExp(`${nodeAddress('node-1')}:10250 is a port that is reserved on the nodes`));
    await assertEchoed(ADDRESSES, 1055);
    await assertRefused(ADDRESSES, 1056);
    await assertRefused(ADDRESSES, 1057);
  });

  test('keeps a client at one pod after session affinity is enabled', async () => {
    await apply(
      namespaceManifest('affinity'),
      loadBalancer('affinity/web', { ports: [{ port: 1070, targetPort: 'main' }] }),
    );
    const both = [await pods.echoForService('affinity/web'), await pods.echoForService('affinity/web')];
    await eventually(
      async () => {
        await assertEchoed(ADDRESSES, 1070);
        assert.ok(both.every(({ server }) => server.received > 0));
      },
      { timeoutMs: 15_000 },
    );
    await patch('affinity/web', {
      spec: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } },
    });
    await eventually(
      async () => {
        const before = both.map(({ server }) => server.received);
        for (let turn = 0; turn < 5; turn++)
          await assertEchoed([nodeAddress('node-1')], 1070, { from: podAddress(20) });
        const met = both.filter(({ server }, index) => server.received > (before[index] ?? 0));
        assert.equal(met.length, 1);
      },
      { timeoutMs: 15_000 },
    );
  });

  async function endpointsOf(namespace: string, name: string): Promise<unknown> {
    const { items } = JSON.parse(await fleet.weir('get', 'services', '-o', 'json')) as {
      items: readonly { namespace: string; name: string; endpoints: unknown }[];
    };
    return items.find((item) => item.namespace === namespace && item.name === name)?.endpoints;
  }
});
