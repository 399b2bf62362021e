import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { silentLogger } from '@weir/runtime';
import { openRedisStore } from '@weir/store';
import { freePort, temporaryDirectory } from '@weir/testkit';
import { type ControlPlane, requireProgram, startControlPlane, startRedis, waitForCustomResources } from '@weir/tools';
import type { Finding } from '../../src/doctor/finding.ts';
import { heartbeat } from '../fixtures/doctor-facts.ts';
import { type InProcessResult, runWeirInProcess, runWeirOnTerminal } from '../fixtures/weir-in-process.ts';

const CRDS = fileURLToPath(new URL('../../../../charts/weir-crds/definitions', import.meta.url));
const LONG_AGO = '2020-01-01T00:00:00.000000Z';

describe('weir doctor on a real API server', requireProgram('kubernetes', 'redis'), () => {
  let plane: ControlPlane;
  const apply = (...objects: readonly object[]): Promise<void> => plane.apply(...objects);
  const patchStatus = (kind: string, name: string, body: object): Promise<string> =>
    plane.kubectl('patch', kind, name, '--subresource=status', '--type=merge', '-p', JSON.stringify(body));
  const doctor = (...args: readonly string[]): Promise<InProcessResult> =>
    runWeirInProcess(['doctor', '--kubeconfig', plane.kubeconfig, ...args]);

  before(async () => {
    plane = await startControlPlane();
  });
  after(() => plane?.close());

  test('reports what is missing in a cluster without Weir', async () => {
    const { code, stdout } = await doctor('-o', 'json');
    assert.equal(code, 1);
    assert.deepEqual(errorsIn(stdout), ['CustomResources', 'ControllerLeader', 'LoadBalancingNodes']);
    const { KubernetesVersion, ServiceRanges, ApiServerClock, RedisReachable } = byCode(stdout);
    assert.match(KubernetesVersion?.message ?? '', /^v1\.\d+\.\d+ is 1\.30 or later$/);
    assert.match(KubernetesVersion?.subject ?? '', /^API server https:\/\/127\.0\.0\.1:\d+$/);
    assert.equal(ServiceRanges?.message, '10.96.0.0/16; Weir refuses endpoints in these ranges');
    assert.match(ApiServerClock?.message ?? '', /^the API server's clock is within 2 s/);
    assert.match(RedisReachable?.message ?? '', /^not checked: no Redis is configured; set --redis URL/);
  });

  test('checks the nodes, Services and policies of the API server', async () => {
    await plane.kubectl('apply', '-f', CRDS);
    await waitForCustomResources(plane);
    const cordoned = { unschedulable: true, podCIDR: '10.244.2.0/24', podCIDRs: ['10.244.2.0/24'] };
    await apply(node('edge-1'), node('edge-2', cordoned), lease('weir-controller-weir'), policy());
    await patchStatus('node', 'edge-1', {
      status: {
        addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    });
    await apply(service('web', 'weir.dev/weir'), service('plain'), service('quiet', 'weir.dev/weir'));
    const conditions = [
      {
        type: 'weir.dev/Accepted',
        status: 'True',
        reason: 'Accepted',
        message: '',
        lastTransitionTime: '2020-01-01T00:00:00Z',
      },
    ];
    const ingress = [{ ip: '10.0.0.1', ipMode: 'VIP' }];
    await patchStatus('service', 'web', { status: { conditions, loadBalancer: { ingress } } });

    const { code, stdout } = await doctor('-o', 'json');
    assert.equal(code, 1);
    assert.deepEqual(errorsIn(stdout), ['ControllerLeader', 'PublishedAddresses']);
    const findings = byCode(stdout);
    const says = (check: string, message: RegExp): void => assert.match(findings[check]?.message ?? '', message);
    says('CustomResources', /are served$/);
    says('ControllerLeader', /controller-a has not renewed Lease default\/weir-controller-weir/);
    says('LoadBalancingNodes', /^only edge-1 is usable/);
    says('NodesLeftOut', /^of 2 labelled nodes, these .*: edge-2 is cordoned/);
    says('NodeAddresses', /^edge-2 has no InternalIP/);
    says('NodePools', /^no usable node is in the pool "dmz" \(requested by TenantPolicy shop\)/);
    says('ProxySourceAddresses', /: 10\.0\.0\.1$/);
    says('PublishedAddresses', /^default\/web: an address is published without ipMode: Proxy/);
    says('NodePorts', /^2 Services can be reached by node ports.*default\/quiet \(3\d+\), default\/web \(3\d+\)/);
    // The check does not report Services that are younger than 30 s, because a controller may not have seen them yet.
    says('UntakenServices', /^3 Services of type LoadBalancer, each with a controller$/);
  });

  test('checks Redis and the proxies that send heartbeats', async () => {
    await using redis = await startRedis({ appendonly: false });
    const store = await openRedisStore({ url: redis.url, fleet: 'blue', log: silentLogger() });
    try {
      const now = Date.now();
      await store.heartbeats.record(heartbeat('edge-1', { sentAt: now, startedAt: now, hostAdvice: ['set x=1'] }));
      await store.heartbeats.record(heartbeat('stranger', { sentAt: now + 100_000, startedAt: now }));
      const { stdout } = await doctor('--redis', redis.url, '--fleet', 'blue', '-o', 'json');
      const findings = byCode(stdout);
      const verdict = (check: string): string => `${findings[check]?.severity}: ${findings[check]?.message}`;
      assert.equal(verdict('RedisReachable'), 'ok: Redis answers as a primary');
      assert.match(verdict('RedisVersion'), /^ok: \d+\.\d+\.\d+ is 7\.0 or later$/);
      assert.equal(verdict('RedisEviction'), 'ok: maxmemory-policy is noeviction');
      assert.match(verdict('RedisPersistence'), /^warning: Redis writes neither an append-only log nor snapshots/);
      assert.match(verdict('RedisClock'), /^ok: /);
      assert.match(verdict('ProxiesAlive'), /^warning: a proxy runs on stranger but serves nothing there/);
      assert.match(verdict('ProxyClocks'), /^error: .* stranger is \d+ s ahead;/);
      assert.match(verdict('KernelSettings'), /^warning: edge-1: set x=1$/);
    } finally {
      await store.close();
    }
  });

  test('reports checks that need missing rights and runs the other checks', async () => {
    await plane.kubectl('create', 'clusterrole', 'reader', '--verb=list', '--resource=services');
    await plane.kubectl('create', 'serviceaccount', 'reader');
    await plane.kubectl(
      'create',
      'clusterrolebinding',
      'reader',
      '--clusterrole=reader',
      '--serviceaccount=default:reader',
    );
    const token = (await plane.kubectl('create', 'token', 'reader')).trim();
    const config = JSON.parse(await plane.kubectl('config', 'view', '--raw', '-o', 'json')) as {
      users: { user: object }[];
    };
    for (const entry of config.users) entry.user = { token };
    await using directory = temporaryDirectory('doctor');
    const kubeconfig = join(directory.path, 'kubeconfig');
    writeFileSync(kubeconfig, JSON.stringify(config));
    const { stdout } = await runWeirInProcess(['doctor', '--kubeconfig', kubeconfig, '-o', 'json']);
    const { LoadBalancingNodes, PublishedAddresses, CustomResources } = byCode(stdout);
    assert.equal(LoadBalancingNodes?.severity, 'warning');
    assert.match(LoadBalancingNodes?.message ?? '', /^not checked: GET \/api\/v1\/nodes: nodes is forbidden/);
    assert.equal(PublishedAddresses?.severity, 'error');
    assert.equal(CustomResources?.severity, 'ok');
  });
});

test('reports two errors if the API server and Redis are unreachable', async () => {
  await using directory = temporaryDirectory('doctor');
  const kubeconfig = kubeconfigOf(directory.path, await freePort());
  const redis = `redis://:secret@127.0.0.1:${await freePort()}`;
  const { code, stdout, stderr } = await runWeirInProcess(['doctor', '--kubeconfig', kubeconfig, '--redis', redis]);
  assert.deepEqual([code, stderr], [1, '']);
  assert.match(
    stdout,
    /^error {4}KubernetesVersion +API server: not checked: the API server https:\S+ does not answer/m,
  );
  assert.match(
    stdout,
    /^error {4}RedisReachable +Redis: not checked: Redis at 127\.0\.0\.1:\d+ refuses the connection/m,
  );
  assert.match(
    stdout,
    /^warning {2}NodePorts +Services: not checked: the API server cannot be queried \(see KubernetesVersion\)$/m,
  );
  assert.match(
    stdout,
    /^warning {2}ProxiesAlive +Proxies: not checked: Redis cannot be queried \(see RedisReachable\)$/m,
  );
  assert.match(stdout, /^25 checks: 0 ok, 23 warning, 2 error$/m);
  assert.doesNotMatch(stdout, /secret/);
});

test('exits at once on Ctrl-C while the API server does not respond', async () => {
  await using directory = temporaryDirectory('doctor');
  const accepted = Promise.withResolvers<Socket>();
  await using server = createServer((socket) => accepted.resolve(socket));
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0 }, resolve));
  const kubeconfig = kubeconfigOf(directory.path, (server.address() as AddressInfo).port);
  const interrupt = new AbortController();
  const result = runWeirOnTerminal({ signal: interrupt.signal }, ['doctor', '--kubeconfig', kubeconfig]);
  const socket = await accepted.promise;
  socket.on('error', () => undefined);
  interrupt.abort();
  assert.deepEqual(await result, { code: 0, stdout: '', stderr: '' });
  socket.destroy();
});

function kubeconfigOf(directory: string, port: number): string {
  const path = join(directory, 'kubeconfig');
  const config = {
    clusters: [{ name: 'c', cluster: { server: `https://127.0.0.1:${port}` } }],
    users: [{ name: 'u', user: {} }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}

function itemsIn(stdout: string): readonly Finding[] {
  return (JSON.parse(stdout) as { items: Finding[] }).items;
}

function byCode(stdout: string): Readonly<Record<string, Finding>> {
  return Object.fromEntries(itemsIn(stdout).map((finding) => [finding.code, finding]));
}

function errorsIn(stdout: string): string[] {
  return itemsIn(stdout).flatMap(({ code, severity }) => (severity === 'error' ? [code] : []));
}

const node = (name: string, spec: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: { role: 'loadbalancer' } },
  spec,
});

const lease = (name: string): object => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name, namespace: 'default' },
  spec: { holderIdentity: 'controller-a', leaseDurationSeconds: 15, renewTime: LONG_AGO },
});

const policy = (): object => ({
  apiVersion: 'weir.dev/v1alpha1',
  kind: 'TenantPolicy',
  metadata: { name: 'shop' },
  spec: { namespaceSelector: {}, pools: ['dmz'] },
});

const service = (name: string, loadBalancerClass?: string): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'default' },
  spec: { type: 'LoadBalancer', ...(loadBalancerClass && { loadBalancerClass }), ports: [{ port: 80 }] },
});
