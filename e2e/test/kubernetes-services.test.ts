// Tests the fields of a Service, which a user writes and changes with kubectl on a real API server.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, type TestContext, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { eventually } from '@weir/testkit';
import { insideNamespace, requireProgram } from '@weir/tools';
import { DUAL_STACK_ADDRESSES, NODES, nodeAddress, nodeAddress6, podAddress } from '../src/addresses.ts';
import { assertClosedWithoutData, assertEchoed, assertEchoedDuring, assertRefused } from '../src/client-assertions.ts';
import { type Fleet, startFleet } from '../src/fleet.ts';
import { loadBalancer, namespaceManifest } from '../src/manifests.ts';
import { Pods } from '../src/pods.ts';
import {
  addressesIn,
  conditionIn,
  patchService,
  type ServiceStatus,
  serviceStatus,
  waitForAddresses,
  waitForStatus,
} from '../src/service-status.ts';

const ADDRESSES = NODES.map(nodeAddress);
const ADDRESSES6 = NODES.map(nodeAddress6);

const requirement = {
  ...requireProgram('redis', 'kubernetes'),
  ...insideNamespace({ addresses: DUAL_STACK_ADDRESSES }),
};

describe('the fields of a Service', { ...requirement, timeout: 300_000 }, () => {
  let fleet: Fleet;
  let pods: Pods;
  const kubectl = (...args: string[]): Promise<string> => fleet.cluster.kubectl(...args);
  const apply = (...objects: readonly object[]): Promise<void> => fleet.cluster.apply(...objects);
  const patch = (path: string, change: object): Promise<void> => patchService(fleet.cluster, path, change);
  const when = (path: string, isRight: (status: ServiceStatus) => boolean): Promise<ServiceStatus> =>
    waitForStatus(fleet.cluster, path, isRight);
  const degraded = (status: ServiceStatus): string => conditionIn(status, 'Degraded')?.message ?? '';
  const published = (path: string, addresses: readonly string[]): Promise<ServiceStatus> =>
    waitForAddresses(fleet.cluster, path, addresses);

  before(async () => {
    fleet = await startFleet({ dualStack: true, settings: { WEIR_CLASSLESS: 'false' } });
    pods = new Pods(fleet.cluster);
  });
  afterEach((context) => {
    if (!(context as TestContext).passed) console.error(fleet.output());
  });
  after(async () => {
    await pods?.close();
    await fleet?.close();
  });

  test('is served if it names the class of Weir, and without class only if the fleet serves such Services', async () => {
    await apply(
      namespaceManifest('classes'),
      loadBalancer('classes/ours', { loadBalancerClass: 'weir.dev/weir', ports: [{ port: 1001 }] }),
      loadBalancer('classes/plain', { ports: [{ port: 1002 }] }),
      loadBalancer('classes/foreign', { loadBalancerClass: 'example.com/other', ports: [{ port: 1003 }] }),
      loadBalancer('classes/ignored', { ports: [{ port: 1004 }] }, { annotations: { 'weir.dev/ignore': 'true' } }),
    );
    await published('classes/ours', ADDRESSES);
    const untouched = async (...names: string[]): Promise<void> => {
      for (const name of names)
        assert.deepEqual(await serviceStatus(fleet.cluster, `classes/${name}`), { loadBalancer: {} });
    };
    await untouched('plain', 'foreign', 'ignored');
    await fleet.restartController({ WEIR_CLASSLESS: 'true' });
    await published('classes/plain', ADDRESSES);
    await untouched('foreign', 'ignored');
    await kubectl('annotate', 'service', 'ignored', '-n', 'classes', 'weir.dev/ignore-');
    await published('classes/ignored', ADDRESSES);
    await kubectl('delete', 'namespace', 'classes', '--wait=false');
  });

  test('follows changes of its type, its ports and their names', async () => {
    await apply(
      namespaceManifest('edits'),
      loadBalancer('edits/web', { type: 'ClusterIP', ports: [{ name: 'a', port: 1010, targetPort: 'main' }] }),
    );
    await pods.echoForService('edits/web');
    await patch('edits/web', { spec: { type: 'LoadBalancer' } });
    await published('edits/web', ADDRESSES);
    await assertEchoed(ADDRESSES, 1010);
    const slices = ['endpointslice', '-n', 'edits', '-l', 'kubernetes.io/service-name=web'];
    await assertEchoedDuring(ADDRESSES, 1010, async () => {
      for (const name of ['c', 'd', 'e', 'f', 'b']) {
        await patch('edits/web', { spec: { ports: [{ name, port: 1010, targetPort: 'main' }] } });
        await kubectl('wait', `--for=jsonpath={.ports[0].name}=${name}`, ...slices);
      }
    });
    await patch('edits/web', { spec: { ports: [{ name: 'b', port: 1011, targetPort: 'main' }] } });
    await assertEchoed(ADDRESSES, 1011);
    await assertRefused(ADDRESSES, 1010);
    await when('edits/web', (now) => now.loadBalancer?.ingress?.[0]?.ports?.[0]?.port === 1011);
    // A proxy publishes its address for the new port when the proxy listens there.
    await published('edits/web', ADDRESSES);
    await patch('edits/web', { spec: { type: 'NodePort' } });
    await assertRefused(ADDRESSES, 1011);
    await when('edits/web', (now) => isDeepStrictEqual(now, { loadBalancer: {} }));
  });

  test('is cleaned up after a deletion without a running controller, and its port becomes free', async () => {
    await apply(namespaceManifest('away'), loadBalancer('away/old', { ports: [{ port: 1020, targetPort: 'main' }] }));
    await pods.echoForService('away/old');
    await published('away/old', ADDRESSES);
    await assertEchoed(ADDRESSES, 1020);
    await fleet.stopController();
    await kubectl('delete', 'service', 'old', '-n', 'away');
    await assertEchoed(ADDRESSES, 1020);
    await fleet.startController();
    await assertRefused(ADDRESSES, 1020);
    await apply(loadBalancer('away/new', { ports: [{ port: 1020, targetPort: 'main' }] }));
    await pods.echoForService('away/new');
    await published('away/new', ADDRESSES);
    await assertEchoed(ADDRESSES, 1020);
  });

  test('admits clients by its source ranges, and prefers the field over the annotation', async () => {
    const [mine, other] = [podAddress(19), podAddress(20)];
    const legacy = 'service.beta.kubernetes.io/load-balancer-source-ranges';
    await apply(
      namespaceManifest('ranges'),
      loadBalancer(
        'ranges/web',
        { ports: [{ port: 1060, targetPort: 'main' }] },
        { annotations: { [legacy]: `${mine}/32` } },
      ),
    );
    await pods.echoForService('ranges/web');
    await assertEchoed(ADDRESSES, 1060, { from: mine });
    await assertClosedWithoutData(ADDRESSES, 1060, { from: other });
    await patch('ranges/web', { spec: { loadBalancerSourceRanges: [` ${other}/32 `, '192.168.0.0/16'] } });
    await assertClosedWithoutData(ADDRESSES, 1060, { from: mine });
    await assertEchoed(ADDRESSES, 1060, { from: other });
    await patch('ranges/web', {
      spec: { loadBalancerSourceRanges: null },
      metadata: { annotations: { [legacy]: null } },
    });
    await assertEchoed(ADDRESSES, 1060, { from: mine });
    await assertEchoed(ADDRESSES, 1060, { from: other });
  });

  test('is degraded by node ports and by a lost client address until both are corrected', async () => {
    await apply(
      namespaceManifest('wishes'),
      loadBalancer('wishes/web', {
        ports: [{ port: 1080, targetPort: 'main' }],
        externalTrafficPolicy: 'Local',
        internalTrafficPolicy: 'Local',
      }),
    );
    const status = await when('wishes/web', (now) => /node ports/.test(degraded(now)));
    assert.match(
      degraded(status),
      /externalTrafficPolicy is Local, but connections reach the pods from the address of the proxy/,
    );
    const bare = [
      { op: 'replace', path: '/spec/externalTrafficPolicy', value: 'Cluster' },
      { op: 'replace', path: '/spec/allocateLoadBalancerNodePorts', value: false },
      { op: 'remove', path: '/spec/ports/0/nodePort' },
    ];
    await kubectl('patch', 'service', 'web', '-n', 'wishes', '--type=json', '-p', JSON.stringify(bare));
    await when('wishes/web', (now) => !/node ports|Local/.test(degraded(now)));
    await patch('wishes/web', { spec: { externalTrafficPolicy: 'Local' } });
    await when('wishes/web', (now) => /is Local/.test(degraded(now)));
    await kubectl('annotate', 'service', 'web', '-n', 'wishes', 'weir.dev/proxy-protocol=v2');
    await when('wishes/web', (now) => !/is Local/.test(degraded(now)));
    await kubectl('annotate', 'service', 'web', '-n', 'wishes', 'weir.dev/proxy-protocol-');
    await pods.echoForService('wishes/web');
    await assertEchoed(ADDRESSES, 1080);
    assert.equal(
      await kubectl('get', 'service', 'web', '-n', 'wishes', '-o', 'jsonpath={.spec.internalTrafficPolicy}'),
      'Local',
    );
  });

  test('with an invalid annotation keeps its last settings and names the annotation until it is corrected', async () => {
    await apply(namespaceManifest('wrong'), loadBalancer('wrong/web', { ports: [{ port: 1090, targetPort: 'main' }] }));
    await pods.echoForService('wrong/web');
    await published('wrong/web', ADDRESSES);
    await kubectl('annotate', 'service', 'web', '-n', 'wrong', 'weir.dev/nodes=many');
    const status = await when('wrong/web', (now) => conditionIn(now, 'Accepted')?.status === 'False');
    assert.match(
      conditionIn(status, 'Accepted')?.message ?? '',
      /weir\.dev\/nodes: "many" is not allowed; use a whole number/,
    );
    assert.equal(conditionIn(status, 'Programmed')?.status, 'True');
    await assertEchoed(ADDRESSES, 1090);
    await eventually(
      async () => assert.match(await kubectl('describe', 'service', 'web', '-n', 'wrong'), /InvalidAnnotation.*"many"/),
      { timeoutMs: 10_000 },
    );
    await kubectl('annotate', '--overwrite', 'service', 'web', '-n', 'wrong', 'weir.dev/nodes=1');
    const corrected = await when('wrong/web', (now) => addressesIn(now).length === 1);
    assert.equal(conditionIn(corrected, 'Accepted')?.status, 'True');
    await apply(
      loadBalancer('wrong/never', { ports: [{ port: 1091 }] }, { annotations: { 'weir.dev/nodes': 'many' } }),
    );
    const never = await when('wrong/never', (now) => conditionIn(now, 'Accepted')?.status === 'False');
    assert.deepEqual(addressesIn(never), []);
  });

  test('publishes addresses of both IP families, and withdraws those of a removed family', async () => {
    await apply(
      namespaceManifest('families'),
      loadBalancer('families/both', {
        ipFamilyPolicy: 'RequireDualStack',
        ports: [{ port: 1100, targetPort: 'main' }],
      }),
      loadBalancer('families/six', { ipFamilies: ['IPv6'], ports: [{ port: 1101, targetPort: 'main' }] }),
    );
    await pods.echoForService('families/both');
    await pods.echoForService('families/six', { number: 1, family: 'IPv6' });
    await published('families/both', [...ADDRESSES, ...ADDRESSES6]);
    await assertEchoed([...ADDRESSES, ...ADDRESSES6], 1100);
    await published('families/six', ADDRESSES6);
    await assertEchoed(ADDRESSES6, 1101);
    await assertRefused(ADDRESSES, 1101);
    await patch('families/both', { spec: { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv4'] } });
    await published('families/both', ADDRESSES);
    await assertRefused(ADDRESSES6, 1100);
    await assertEchoed(ADDRESSES, 1100);
  });
});
