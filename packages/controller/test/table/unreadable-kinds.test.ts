// A controller that starts without permission to read a kind falls back to the published table, if the store has one.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  DEFAULT_FLEET_SETTINGS,
  EMPTY_TABLE,
  entriesOf,
  type SliceObject,
  UNRESTRICTED_GRANTS,
  UNRESTRICTED_POLICY,
} from '@weir/model';
import { servedServices, startControllerHarness } from '../fixtures/controller-harness.ts';
import { FakeSource, nodeObject, serviceObject } from '../fixtures/fake-source.ts';

const nodes = [nodeObject('a', '10.0.0.1')];
const unreadableKinds = new Set(['Node'] as const);
const [POD_ADDRESS, ALLOWED_ADDRESS] = ['10.1.0.1', '10.9.9.9'];

describe('an unreadable kind', () => {
  test('is taken from the published table until it can be read', async (context) => {
    const first = await startControllerHarness(context, {
      source: new FakeSource({ nodes, services: [serviceObject('web')] }),
    });
    const listeners = async (): Promise<readonly string[]> =>
      [...((await first.store.table.read())?.table.entries.keys() ?? [])].filter((id) => id.startsWith('listener/'));
    const before = await listeners();
    assert.equal(before.length, 1);
    await first.controller.close();
    const source = new FakeSource({ unreadableKinds, services: [serviceObject('web')] });
    const { advance } = await startControllerHarness(context, { source, store: first.store, clock: first.clock });
    assert.deepEqual(await listeners(), before);
    source.set({ services: [serviceObject('api', { ports: [port(81)] }), serviceObject('web')] });
    await advance(10);
    assert.equal((await listeners()).length, 2);
    source.set({ unreadableKinds: new Set(), nodes: [] });
    await advance(10);
    assert.deepEqual(await listeners(), []);
  });

  test('drops only the address of an ended pod when pods become readable before policies', async (context) => {
    const settings = { ...DEFAULT_FLEET_SETTINGS, trust: { kind: 'pods', serviceCidrs: [] } } as const;
    const meta = { labels: {}, annotations: {}, createdAt: null } as const;
    const state = { zone: null, ready: true, serving: true, terminating: false };
    const slice: SliceObject = {
      ...meta,
      uid: 's',
      name: 'web-1',
      namespace: 'shop',
      serviceName: 'web',
      addressType: 'IPv4',
      // This port is reserved on the nodes, but not in pods with an address of their own.
      ports: [{ name: null, port: 10_250, protocol: 'TCP' }],
      endpoints: [POD_ADDRESS, ALLOWED_ADDRESS].map((address) => ({ addresses: [address], ...state })),
    };
    const namespaces = [{ ...meta, uid: 'n', name: 'shop' }];
    const grants = { ...UNRESTRICTED_GRANTS, allowedEndpointCIDRs: ['10.9.0.0/16'] };
    const policies = [{ ...meta, uid: 'p', name: 'all', spec: { ...UNRESTRICTED_POLICY, grants } }];
    const both = [POD_ADDRESS, ALLOWED_ADDRESS];
    const pods = [{ namespace: 'shop', name: 'web', ips: [POD_ADDRESS], hostNetwork: false }];
    const objects = { namespaces, nodes, services: [serviceObject('web')], slices: [slice] };
    const first = await startControllerHarness(context, {
      settings,
      source: new FakeSource({ ...objects, policies, pods }),
    });
    const publishedEndpoints = async (): Promise<readonly string[]> =>
      entriesOf((await first.store.table.read())?.table ?? EMPTY_TABLE, 'endpoints').flatMap(({ endpoints }) =>
        endpoints.map(({ address }) => address),
      );
    assert.deepEqual(await publishedEndpoints(), both);
    await first.controller.close();
    const source = new FakeSource({ ...objects, unreadableKinds: new Set(['Pod', 'TenantPolicy']) });
    const { store, clock } = first;
    const { advance } = await startControllerHarness(context, { settings, source, store, clock });
    assert.deepEqual(await publishedEndpoints(), both);
    source.set({ unreadableKinds: new Set(['TenantPolicy']), pods });
    await advance(10);
    assert.deepEqual(await publishedEndpoints(), both);
    source.set({ pods: [] });
    await advance(10);
    assert.deepEqual(await publishedEndpoints(), [ALLOWED_ADDRESS]);
  });

  test('is empty if there is no table and no Service has an address', async (context) => {
    const source = new FakeSource({ unreadableKinds, services: [serviceObject('web')] });
    const { store } = await startControllerHarness(context, { source });
    assert.deepEqual(await servedServices(store), ['web']);
  });

  test('is empty if only ignored Services have addresses', async (context) => {
    const annotations = { 'weir.dev/ignore': 'true' };
    const others = serviceObject('others', { publishedIPs: ['10.0.0.1'], annotations });
    const source = new FakeSource({ unreadableKinds, services: [others, serviceObject('web')] });
    const { store } = await startControllerHarness(context, { source });
    assert.deepEqual(await servedServices(store), ['web']);
  });

  test('blocks publication if there is no table and Services have addresses, which an empty table would withdraw', async (context) => {
    const web = serviceObject('web', { publishedIPs: ['10.0.0.1'] });
    const source = new FakeSource({ unreadableKinds, services: [web] });
    const { store, advance } = await startControllerHarness(context, { source });
    assert.deepEqual(await servedServices(store), ['nothing']);
    source.set({ unreadableKinds: new Set(), nodes });
    await advance(2_000);
    assert.deepEqual(await servedServices(store), ['web']);
  });
});

function port(number: number): ReturnType<typeof serviceObject>['ports'][number] {
  return { name: null, port: number, protocol: 'TCP', appProtocol: null, nodePort: null };
}
