// Tests the conditions and Events of Services that are not served, or not as requested, as a user reads them with kubectl.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type EventuallyOptions, eventually } from '@weir/testkit';
import { insideNamespace, requireProgram } from '@weir/tools';
import { ALL_ADDRESSES, NODES, nodeAddress } from '../src/addresses.ts';
import { assertEchoed } from '../src/client-assertions.ts';
import { type Fleet, startFleet } from '../src/fleet.ts';
import { loadBalancer, namespaceManifest, suspension, tenantPolicy } from '../src/manifests.ts';
import { Pods } from '../src/pods.ts';
import { conditionIn, type ServiceWatch, watchServices } from '../src/service-status.ts';

const ADDRESSES = NODES.map(nodeAddress);
const [FIRST = '', SECOND = '', THIRD = ''] = ADDRESSES;
const DEFAULT_WAIT: EventuallyOptions = { timeoutMs: 60_000, intervalMs: 500 };
/** How long silent proxies keep their addresses after Redis is back. */
const GRACE_MS = 10_000;

const requirement = { ...requireProgram('redis', 'kubernetes'), ...insideNamespace({ addresses: ALL_ADDRESSES }) };

describe('the conditions of a Service', { ...requirement, timeout: 300_000 }, () => {
  let fleet: Fleet;
  let pods: Pods;
  let services: ServiceWatch;
  const kubectl = (...args: string[]): Promise<string> => fleet.cluster.kubectl(...args);
  const apply = (...objects: readonly object[]): Promise<void> => fleet.cluster.apply(...objects);
  const serviceArguments = (path: string): readonly string[] => {
    const [space = '', name = ''] = path.split('/');
    return ['service', name, '-n', space];
  };
  const served = (path: string, addresses: readonly string[] = ADDRESSES): Promise<void> =>
    services.waitForAddresses(path, addresses);
  /** Waits until `kubectl describe` prints an Event. Conditions cannot be checked in this way, because `kubectl describe` omits them. */
  const described = (path: string, event: RegExp): Promise<void> =>
    eventually(async () => assert.match(await kubectl('describe', ...serviceArguments(path)), event), DEFAULT_WAIT);
  const webSpec = (port: number, overrides: object = {}): object => ({
    selector: { app: 'web' },
    allocateLoadBalancerNodePorts: false,
    ports: [{ port, targetPort: 'main' }],
    ...overrides,
  });

  before(async () => {
    fleet = await startFleet();
    pods = new Pods(fleet.cluster);
    services = await watchServices(fleet.cluster);
    await apply(
      namespaceManifest('shop', { team: 'shop' }),
      tenantPolicy('shop', {}),
      loadBalancer('shop/web', webSpec(4001)),
    );
    await pods.echo({ namespace: 'shop', name: 'web', labels: { app: 'web' }, number: 1, port: 8080 });
    await served('shop/web');
    await services.waitForNoCondition('shop/web', 'Degraded');
  });
  after(async () => {
    await pods?.close();
    await services?.close();
    await fleet?.close();
  });

  test('BindFailed: names the nodes whose port another process uses, and serves where the port becomes free', async () => {
    const others = await Promise.all(ADDRESSES.map((host) => pods.echoServerAt({ host, port: 4010 })));
    await apply(loadBalancer('shop/taken', webSpec(4010)));
    await services.waitFor('shop/taken', (status) => {
      const { status: value, reason, message = '' } = conditionIn(status, 'Programmed') ?? {};
      assert.equal(`${value} ${reason}`, 'False BindFailed');
      for (const [index, node] of NODES.entries()) {
        const failure = `${node}: cannot listen on ${ADDRESSES[index]}:4010: the port is in use by another process`;
        assert.ok(message.includes(failure), message);
      }
      assert.match(message, /stop that process, or give the Service another port.*Weir retries$/);
    });
    await services.waitForCondition('shop/taken', 'Accepted', 'True Accepted');
    await served('shop/taken', []);
    await described('shop/taken', /Warning +BindFailed .*cannot listen on/);
    await others[0]?.close();
    await served('shop/taken', [FIRST]);
    await assertEchoed([FIRST], 4010);
    const fewer = await services.waitForCondition('shop/taken', 'Degraded', 'True FewerNodes');
    assert.doesNotMatch(fewer, /node-1/);
    for (const node of ['node-2', 'node-3']) assert.ok(fewer.includes(`${node}: cannot listen on`), fewer);
    await Promise.all(others.map((other) => other.close()));
    await served('shop/taken');
    await services.waitForNoCondition('shop/taken', 'Degraded');
    await assertEchoed(ADDRESSES, 4010);
  });

  test('NoNodes: names the command that labels a node, and serves when the node has the label', async () => {
    await apply(
      namespaceManifest('edge', { team: 'edge' }),
      tenantPolicy('edge', { pools: ['edge'] }),
      loadBalancer('edge/web', { ports: [{ port: 4020 }] }),
    );
    const message = await services.waitForCondition('edge/web', 'Programmed', 'False NoNodes');
    assert.match(message, /no node of pool "edge".*kubectl label node NAME role=loadbalancer weir\.dev\/pool=edge/);
    await services.waitForCondition('edge/web', 'Accepted', 'True Accepted');
    await served('edge/web', []);
    await described('edge/web', /Warning +NoNodes .*no node of pool "edge"/);
    await kubectl('label', 'node', 'node-3', 'weir.dev/pool=edge');
    await served('edge/web', [THIRD]);
    await kubectl('label', 'node', 'node-3', 'weir.dev/pool-');
    await services.waitForCondition('edge/web', 'Programmed', 'True Programmed');
  });

  test('Degraded: names the reason in the condition and in an Event', async () => {
    const four = { annotations: { 'weir.dev/nodes': '4' } };
    await apply(
      loadBalancer('shop/idle', webSpec(4030, { selector: { app: 'nobody' } })),
      loadBalancer('shop/over', webSpec(4031)),
      loadBalancer('shop/bypass', { selector: { app: 'web' }, ports: [{ port: 4032, targetPort: 'main' }] }),
      loadBalancer('shop/local', webSpec(4033, { externalTrafficPolicy: 'Local' })),
      loadBalancer('shop/few', webSpec(4034), four),
    );
    await served('shop/over');
    await apply(tenantPolicy('shop', { allowedPorts: [4001, 4010, '4030', '4032-4039'] }));
    for (const [name, reason, message] of [
      ['idle', 'NoReadyEndpoints', /there is no endpoint, so clients are refused/],
      ['over', 'OverLimit', /4031\/TCP is no longer allowed for tenant "shop".* TenantPolicy "shop"/],
      ['bypass', 'NodePortBypass', /node ports \(\d+\) are open on every node.*allocateLoadBalancerNodePorts/],
      ['local', 'SourceAddressNotPreserved', /externalTrafficPolicy is Local.*weir\.dev\/proxy-protocol/],
      ['few', 'FewerNodes', /served on 3 of 4 requested nodes/],
    ] as const) {
      assert.match(await services.waitForCondition(`shop/${name}`, 'Degraded', `True ${reason}`), message);
      await served(`shop/${name}`);
      await described(`shop/${name}`, new RegExp(`Warning +${reason} `));
    }
    await apply(tenantPolicy('shop', {}));
    await services.waitForNoCondition('shop/over', 'Degraded');
  });

  test('refused ports carry their own error, and the other ports are served', async () => {
    await apply(tenantPolicy('shop', { allowedPorts: [4001, '4010-4050', 22] }));
    const ports = [4001, 22, 4060].map((port) => ({ name: `p${port}`, port, targetPort: 'main' }));
    await apply(loadBalancer('shop/web', webSpec(4001, { ports })));
    await services.waitFor('shop/web', ({ loadBalancer: published }) => {
      assert.deepEqual(
        published?.ingress?.map((each) => each.ports?.map(({ port, error }) => [port, error])),
        ADDRESSES.map(() => [
          [22, 'weir.dev/PortReserved'],
          [4001, undefined],
          [4060, 'weir.dev/PortNotAllowed'],
        ]),
      );
    });
    await assertEchoed(ADDRESSES, 4001);
    await described('shop/web', /Warning +Port(Reserved|NotAllowed) /);
    await apply(tenantPolicy('shop', {}), loadBalancer('shop/web', webSpec(4001)));
    await services.waitForCondition('shop/web', 'Accepted', 'True Accepted');
  });

  test('Suspended: has the source, the message and the author, and the addresses stay published', async () => {
    for (const [by, rule, author] of [
      ['SuspendedByOperator', undefined, /^Call us\. \(suspended 2\S+Z by an unknown user of \S+\)$/],
      ['SuspendedByRule', 'busy: 1.4G', /^Call us\. \(suspended 2\S+Z by rule busy: 1\.4G\)$/],
    ] as const) {
      const target = { type: 'Service', namespace: 'shop', service: 'web' };
      await apply(suspension('stop', { target, message: 'Call us.', ...(rule !== undefined && { rule }) }));
      assert.match(await services.waitForCondition('shop/web', 'Suspended', `True ${by}`), author);
      await served('shop/web');
      await described('shop/web', new RegExp(`Warning +${by} .*Call us\\.`));
      await kubectl('delete', 'suspension', 'stop');
      await services.waitForNoCondition('shop/web', 'Suspended');
    }
    await assertEchoed(ADDRESSES, 4001);
  });

  test('FleetUnreachable: only new Services get the condition without Redis, and addresses stay for 10 s after Redis is back', async () => {
    const before = await kubectl('get', ...serviceArguments('shop/web'), '-o', 'yaml');
    await fleet.redis.stop();
    await fleet.killProxy('node-3');
    await apply(loadBalancer('shop/new', webSpec(4040)));
    const message = await services.waitForCondition('shop/new', 'Programmed', 'Unknown FleetUnreachable');
    assert.match(message, /unknown whether this Service is served.* ask the operator to check the store/);
    assert.equal(await kubectl('get', ...serviceArguments('shop/web'), '-o', 'yaml'), before);
    await assertEchoed([FIRST, SECOND], 4001);
    const back = performance.now();
    await fleet.redis.start();
    await services.waitForCondition('shop/new', 'Programmed', 'True Programmed');
    await assertEchoed([FIRST, SECOND], 4040);
    await served('shop/web', [FIRST, SECOND]);
    const afterMs = performance.now() - back;
    assert.ok(afterMs >= GRACE_MS, `the address of a silent proxy was withdrawn ${afterMs} ms after Redis was back`);
  });

  test('withdraws the addresses of proxies that die one after another, except the last address', async () => {
    const before = services.addressHistory('shop/web').length;
    await fleet.killProxy('node-2');
    await served('shop/web', [FIRST]);
    await fleet.killProxy('node-1');
    await eventually(async () => {
      const { items } = JSON.parse(await fleet.weir('get', 'proxies', '-o', 'json')) as {
        items: readonly { readonly state: string }[];
      };
      assert.ok(items.length === NODES.length && items.every(({ state }) => state === 'Silent'));
    }, DEFAULT_WAIT);
    await apply(loadBalancer('shop/late', webSpec(4041)));
    const message = await services.waitForCondition('shop/late', 'Programmed', 'False WaitingForProxy');
    assert.match(message, /waiting for the proxies of node-1, node-2, node-3 to confirm the ports/);
    const noProxy = await services.waitForCondition('shop/web', 'Programmed', 'Unknown NoProxy');
    assert.match(noProxy, /^no proxy of this Service has sent a heartbeat since \d{4}-.*Z .* stays published/);
    assert.equal(await services.waitForCondition('shop/web', 'Degraded', 'True NoProxy'), noProxy);
    assert.deepEqual(services.addressHistory('shop/web').slice(before), [[FIRST]]);
  });
});
