// A controller that starts without the right to read a kind, and a store that tells something of what it was, or nothing.
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
const unread = new Set(['Node'] as const);
const [OF_POD, ALLOWED] = ['10.1.0.1', '10.9.9.9'];

describe('a kind that was never read', () => {
  test('is as the table in force has it, until it is read', async (context) => {
    const first = await startControllerHarness(context, {
      source: new FakeSource({ nodes, services: [serviceObject('web')] }),
    });
    const listeners = async (): Promise<readonly string[]> =>
      [...((await first.store.table.read())?.table.entries.keys() ?? [])].filter((id) => id.startsWith('listener/'));
    const before = await listeners();
    assert.equal(before.length, 1);
    await first.controller.close();
    const source = new FakeSource({ unreadableKinds: unread, services: [serviceObject('web')] });
    const { advance } = await startControllerHarness(context, { source, store: first.store, clock: first.clock });
    assert.deepEqual(await listeners(), before);
    source.set({ services: [serviceObject('api', { ports: [port(81)] }), serviceObject('web')] });
    await advance(10);
    assert.equal((await listeners()).length, 2);
    source.set({ unreadableKinds: new Set(), nodes: [] });
    await advance(10);
    assert.deepEqual(await listeners(), []);
  });

  test('that are policies lets go of the address of a pod that ends once pods can be read, and of no other', async (context) => {
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
      ports: [{ name: null, port: 8080, protocol: 'TCP' }],
      endpoints: [OF_POD, ALLOWED].map((address) => ({ addresses: [address], ...state })),
    };
    const namespaces = [{ ...meta, uid: 'n', name: 'shop' }];
    const grants = { ...UNRESTRICTED_GRANTS, allowedEndpointCIDRs: ['10.9.0.0/16'] };
    const policies = [{ ...meta, uid: 'p', name: 'all', spec: { ...UNRESTRICTED_POLICY, grants } }];
    const both = [OF_POD, ALLOWED];
    const pods = [{ namespace: 'shop', name: 'web', ips: [OF_POD], hostNetwork: false }];
    const seen = { namespaces, nodes, services: [serviceObject('web')], slices: [slice] };
    const first = await startControllerHarness(context, {
      settings,
      source: new FakeSource({ ...seen, policies, pods }),
    });
    const used = async (): Promise<readonly string[]> =>
      entriesOf((await first.store.table.read())?.table ?? EMPTY_TABLE, 'endpoints').flatMap(({ endpoints }) =>
        endpoints.map(({ address }) => address),
      );
    assert.deepEqual(await used(), both);
    await first.controller.close();
    const source = new FakeSource({ ...seen, unreadableKinds: new Set(['Pod', 'TenantPolicy']) });
    const { store, clock } = first;
    const { advance } = await startControllerHarness(context, { settings, source, store, clock });
    assert.deepEqual(await used(), both);
    source.set({ unreadableKinds: new Set(['TenantPolicy']), pods });
    await advance(10);
    assert.deepEqual(await used(), both);
    source.set({ pods: [] });
    await advance(10);
    assert.deepEqual(await used(), [ALLOWED]);
  });

  test('is none where no table is, and nothing was ever served', async (context) => {
    const source = new FakeSource({ unreadableKinds: unread, services: [serviceObject('web')] });
    const { store } = await startControllerHarness(context, { source });
    assert.deepEqual(await servedServices(store), ['web']);
  });

  test('is none, too, where only Services have addresses that are to be left alone', async (context) => {
    const annotations = { 'weir.dev/ignore': 'true' };
    const others = serviceObject('others', { publishedIPs: ['10.0.0.1'], annotations });
    const source = new FakeSource({ unreadableKinds: unread, services: [others, serviceObject('web')] });
    const { store } = await startControllerHarness(context, { source });
    assert.deepEqual(await servedServices(store), ['web']);
  });

  test('is waited for where no table is and Services have addresses: an empty one would take them out', async (context) => {
    const web = serviceObject('web', { publishedIPs: ['10.0.0.1'] });
    const source = new FakeSource({ unreadableKinds: unread, services: [web] });
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
