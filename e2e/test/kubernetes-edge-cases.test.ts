// Tests unusual objects that the API server accepts, missing custom resources, and changes by operators, with kubectl on a real API server.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import { insideNamespace, requireProgram } from '@weir/tools';
import { ALL_ADDRESSES, FOREIGN_ADDRESS, NODES, nodeAddress } from '../src/addresses.ts';
import { assertEchoed, assertRefused } from '../src/client-assertions.ts';
import { applyCustomResources, type Fleet, startFleet } from '../src/fleet.ts';
import { endpointSlice, loadBalancer, namespaceManifest, tenantPolicy } from '../src/manifests.ts';
import { Pods } from '../src/pods.ts';
import {
  addressesIn,
  conditionIn,
  type ServiceStatus,
  waitForAddresses,
  waitForRefusal,
  waitForStatus,
} from '../src/service-status.ts';

const ADDRESSES = NODES.map(nodeAddress);
const LONG_WAIT = { timeoutMs: 30_000, intervalMs: 200 };

const requirement = {
  ...requireProgram('redis', 'kubernetes'),
  ...insideNamespace({ addresses: [...ALL_ADDRESSES, FOREIGN_ADDRESS] }),
};

describe('edge cases', { ...requirement, timeout: 300_000 }, () => {
  let fleet: Fleet;
  let pods: Pods;
  const kubectl = (...args: string[]): Promise<string> => fleet.cluster.kubectl(...args);
  const apply = (...objects: readonly object[]): Promise<void> => fleet.cluster.apply(...objects);
  /** Creates objects with large annotations. `kubectl apply` would fail, because it repeats the object in an annotation. */
  const create = (...items: readonly object[]): Promise<string> =>
    fleet.cluster.kubectl('create', '-f', '-', { stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }) });
  const when = (path: string, isRight: (status: ServiceStatus) => boolean): Promise<ServiceStatus> =>
    waitForStatus(fleet.cluster, path, isRight);
  const served = (path: string, addresses = ADDRESSES): Promise<ServiceStatus> =>
    waitForAddresses(fleet.cluster, path, addresses);
  const refusal = (path: string): Promise<string> => waitForRefusal(fleet.cluster, path);
  const accepted = (path: string): Promise<ServiceStatus> =>
    when(path, (now) => conditionIn(now, 'Accepted')?.status === 'True');
  const codes = async (code: string): Promise<readonly string[]> =>
    (await fleet.problems()).filter((problem) => problem.code === code).map(({ subject }) => subject);

  before(async () => {
    fleet = await startFleet({ customResources: false });
    pods = new Pods(fleet.cluster);
  });
  after(async () => {
    await pods?.close();
    await fleet?.close();
  });

  test('serves Services without CRDs, reports the missing CRDs, and uses them when they are created', async () => {
    await apply(
      namespaceManifest('early', { team: 'early' }),
      loadBalancer('early/web', { ports: [{ port: 2001, targetPort: 'main' }] }),
    );
    await pods.echo({ namespace: 'early', name: 'web-1', labels: { app: 'web' }, number: 1, port: 8080 });
    await served('early/web');
    await assertEchoed(ADDRESSES, 2001);
    assert.deepEqual((await codes('MissingCustomResource')).toSorted(), [
      'suspensions.weir.dev',
      'tenantpolicies.weir.dev',
    ]);
    const [problem] = (await fleet.problems()).filter(({ code }) => code === 'MissingCustomResource');
    assert.match(
      problem?.message ?? '',
      /helm upgrade with crds.install, or kubectl apply -f charts\/weir-crds\/definitions/,
    );

    await applyCustomResources(fleet.cluster);
    await eventually(async () => assert.deepEqual(await codes('MissingCustomResource'), []), LONG_WAIT);
    await apply(
      tenantPolicy('early', { limits: { services: 1 } }),
      loadBalancer('early/more', { ports: [{ port: 2002 }] }),
    );
    assert.match(await refusal('early/more'), /QuotaExceeded: 1 of 1 load balancers/);
    await assertEchoed(ADDRESSES, 2001);
  });

  test('a lowered limit keeps existing Services, degrades them, and refuses new Services', async () => {
    await apply(
      namespaceManifest('less', { team: 'less' }),
      tenantPolicy('less', { limits: { services: 2 }, allowedPorts: ['2010-2019'] }),
      loadBalancer('less/a', { ports: [{ port: 2010 }] }),
      loadBalancer('less/b', { ports: [{ port: 2011 }] }),
    );
    for (const path of ['less/a', 'less/b']) await served(path);
    await apply(tenantPolicy('less', { limits: { services: 1 }, allowedPorts: [2011] }));
    const over = await when('less/a', (now) =>
      /2 of 1 load balancers of tenant "less" are in use/.test(conditionIn(now, 'Degraded')?.message ?? ''),
    );
    assert.match(conditionIn(over, 'Degraded')?.message ?? '', /2010\/TCP is no longer allowed for tenant "less"/);
    for (const path of ['less/a', 'less/b']) assert.deepEqual(addressesIn(await served(path)), ADDRESSES);
    await apply(loadBalancer('less/c', { ports: [{ port: 2011 }] }));
    assert.match(await refusal('less/c'), /QuotaExceeded: 2 of 1 load balancers .*\(a, b\)/);
    await kubectl('delete', 'service', 'a', '-n', 'less');
    await when('less/b', (now) => !/of 1 load balancers/.test(conditionIn(now, 'Degraded')?.message ?? ''));
    const [, line = ''] = (await kubectl('get', 'tenantpolicy', 'less')).split('\n');
    assert.match(line, /^less +0 +\d+ +1 +1 +0 +1 /);
    assert.match(await kubectl('describe', 'tenantpolicy', 'less'), /Tenant Count: +1/);
  });

  test('serves names of 63 characters and a hundred ports', async () => {
    const [namespace, name] = [`n${'a'.repeat(61)}z`, `s${'b'.repeat(61)}y`];
    const ports = Array.from({ length: 100 }, (_, i) => ({
      name: `p${'c'.repeat(12)}${i}`.padEnd(63, 'd'),
      port: 3000 + i,
      targetPort: 'main',
    }));
    await apply(
      namespaceManifest(namespace),
      loadBalancer(`${namespace}/${name}`, { selector: { app: 'long' }, ports }),
    );
    await pods.echo({ namespace, name: 'p'.repeat(63), labels: { app: 'long' }, number: 2, port: 8080 });
    const status = await served(`${namespace}/${name}`);
    assert.equal(status.loadBalancer?.ingress?.[0]?.ports?.length, 100);
    for (const port of [3000, 3050, 3099]) await assertEchoed(ADDRESSES, port);
    assert.match(await fleet.weir('explain', `${namespace}/${name}`), /Programmed/);
    await kubectl('delete', 'service', name, '-n', namespace);
    await assertRefused(ADDRESSES, 3099);
  });

  test('treats an empty selector as no selector, counts thousands of endpoints, and uses the remaining endpoint', async () => {
    const server = await pods.echoServerAt({ host: FOREIGN_ADDRESS, port: 8080 });
    const many = Array.from({ length: 3_000 }, (_, i) => `172.21.${Math.floor(i / 250)}.${(i % 250) + 1}`);
    const slices = [0, 1, 2].map((part) => ({
      ...endpointSlice('crowd/web', many.slice(part * 1_000, (part + 1) * 1_000)),
      metadata: { namespace: 'crowd', name: `web-${part}`, labels: { 'kubernetes.io/service-name': 'web' } },
    }));
    await apply(
      namespaceManifest('crowd', { team: 'crowd' }),
      tenantPolicy('crowd', { allowedEndpointCIDRs: ['172.20.0.0/15'] }),
      loadBalancer('crowd/web', { selector: {}, ports: [{ port: 2020 }] }),
    );
    await create(...slices);
    const total = async (): Promise<unknown> => {
      const { items } = JSON.parse(await fleet.weir('get', 'services', '-o', 'json')) as {
        items: readonly { namespace: string; endpoints: { total: number } }[];
      };
      return items.find((item) => item.namespace === 'crowd')?.endpoints;
    };
    await eventually(async () => assert.deepEqual(await total(), { ready: 3_000, total: 3_000 }), LONG_WAIT);
    await kubectl('delete', 'endpointslices', '-n', 'crowd', '--all');
    await apply(endpointSlice('crowd/web', [FOREIGN_ADDRESS]));
    await eventually(async () => assert.deepEqual(await total(), { ready: 1, total: 1 }), LONG_WAIT);
    await assertEchoed(ADDRESSES, 2020);
    assert.ok(server.received > 0);
  });

  test('refuses annotations of 250 KiB and with Unicode text by one short message, written once', async () => {
    const versionOf = (name: string): Promise<string> =>
      kubectl('get', 'service', name, '-n', 'huge', '-o', 'jsonpath={.metadata.resourceVersion}');
    await create(
      namespaceManifest('huge'),
      loadBalancer(
        'huge/foreign',
        { ports: [{ port: 2030 }] },
        { annotations: { 'example.com/note': 'x'.repeat(250 * 1024) } },
      ),
      loadBalancer(
        'huge/wrong',
        { ports: [{ port: 2031 }] },
        { annotations: { 'weir.dev/hosts': '🐟,'.repeat(50 * 1024) } },
      ),
      loadBalancer(
        'huge/odd',
        { ports: [{ port: 2032 }] },
        { annotations: { 'weir.dev/algorithm': `a${'🐟'.repeat(60)}` } },
      ),
    );
    await served('huge/foreign');
    for (const name of ['wrong', 'odd']) {
      const text = await refusal(`huge/${name}`);
      assert.match(text, /^InvalidAnnotation: annotation weir\.dev\/(hosts|algorithm): ".*…" /u);
      assert.ok(Buffer.byteLength(text) < 1_100 && text.isWellFormed(), text);
    }
    const versions = await Promise.all(['wrong', 'odd'].map(versionOf));
    // Waits until the marker Service is served. A superfluous status update would be written before the marker's status.
    await apply(loadBalancer('huge/marker', { ports: [{ port: 2033 }] }));
    await served('huge/marker');
    assert.deepEqual(await Promise.all(['wrong', 'odd'].map(versionOf)), versions);
    await kubectl('annotate', '--overwrite', 'service', 'wrong', '-n', 'huge', 'weir.dev/hosts-');
    await accepted('huge/wrong');
  });

  test('reports an EndpointSlice with an invalid port to the operator and uses the other slices', async () => {
    await apply(
      namespaceManifest('ports', { team: 'crowd' }),
      loadBalancer('ports/web', { selector: null, ports: [{ port: 2040 }] }),
      endpointSlice('ports/web', [FOREIGN_ADDRESS]),
      {
        ...endpointSlice('ports/web', [FOREIGN_ADDRESS], { ports: [{ name: '', port: 99_999 }] }),
        metadata: { namespace: 'ports', name: 'odd', labels: { 'kubernetes.io/service-name': 'web' } },
      },
    );
    await assertEchoed(ADDRESSES, 2040);
    await eventually(
      async () => assert.deepEqual(await codes('InvalidObject'), ['EndpointSlice ports/odd']),
      LONG_WAIT,
    );
    await kubectl('delete', 'endpointslice', 'odd', '-n', 'ports');
    await eventually(async () => assert.deepEqual(await codes('InvalidObject'), []), LONG_WAIT);
  });

  test('selects nodes by annotations, pools, cordons and the exclusion label', async () => {
    await apply(
      namespaceManifest('place', { team: 'place' }),
      tenantPolicy('place', { pools: ['default', 'edge'] }),
      loadBalancer('place/one', { ports: [{ port: 2050 }] }, { annotations: { 'weir.dev/nodes': '1' } }),
      loadBalancer('place/tcp', { ports: [{ port: 2051 }] }),
    );
    assert.equal(addressesIn(await when('place/one', (now) => addressesIn(now).length > 0)).length, 1);
    await served('place/tcp');
    await apply(
      namespaceManifest('rival'),
      loadBalancer('rival/tcp', { ports: [{ port: 2051 }] }),
      loadBalancer('rival/udp', { ports: [{ port: 2051, protocol: 'UDP' }] }),
      loadBalancer('rival/ssh', { ports: [{ port: 22 }] }),
    );
    const conflict = await refusal('rival/tcp');
    assert.match(conflict, /^PortConflict: .*2051\/TCP.*3 nodes/);
    assert.doesNotMatch(conflict, /place/);
    await served('rival/udp');
    assert.match(await refusal('rival/ssh'), /^PortReserved: port 22\/TCP/);

    await kubectl('label', 'node', 'node-3', 'weir.dev/pool=edge');
    const two = ADDRESSES.slice(0, 2);
    await served('place/tcp', two);
    await kubectl('annotate', 'service', 'one', '-n', 'place', 'weir.dev/pool=edge');
    await served('place/one', ADDRESSES.slice(2));
    await kubectl('cordon', 'node-2');
    await apply(loadBalancer('place/later', { ports: [{ port: 2052 }] }));
    await served('place/later', ADDRESSES.slice(0, 1));
    await served('place/tcp', two);
    await kubectl('uncordon', 'node-2');
    await served('place/later', two);
    await kubectl('label', 'node', 'node-2', 'node.kubernetes.io/exclude-from-external-load-balancers=');
    await served('place/tcp', ADDRESSES.slice(0, 1));
    // The Service without a node goes before the Service that has one.
    await kubectl('label', 'node', 'node-2', 'node.kubernetes.io/exclude-from-external-load-balancers-');
    await served('rival/tcp', ADDRESSES.slice(1, 2));
    await served('place/tcp', ADDRESSES.slice(0, 1));
    await kubectl('delete', 'service', 'tcp', '-n', 'rival');
    await served('place/tcp', two);
  });
});
