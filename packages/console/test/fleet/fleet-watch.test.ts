import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Entry, type Heartbeat, listenerId, type ServiceEntry, serviceId, tableOf } from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import { MemoryStore, TablePublisher } from '@weir/store';
import { FleetWatch } from '../../src/fleet/fleet-watch.ts';
import { SERVICE_SETTINGS } from '../fixtures/seeded-store.ts';

const NODE: Entry = {
  kind: 'node',
  id: 'node/a',
  name: 'a',
  bindAddresses: ['10.0.0.1'],
  publishedAddresses: ['192.0.2.1'],
  zone: null,
  pool: 'default',
};

function serviceEntry(index: number): ServiceEntry {
  const name = `web${index}`;
  return {
    kind: 'service',
    id: serviceId(name),
    uid: name,
    namespace: 'shop',
    name,
    tenant: 'shop',
    accepted: { reason: 'Accepted', message: 'accepted' },
    degraded: [],
    settings: SERVICE_SETTINGS,
    ports: [{ name: null, port: 8000 + index, protocol: 'TCP', error: null }],
    pool: 'default',
    nodes: ['a'],
  };
}

function listenerOf({ uid, ports }: ServiceEntry): Entry {
  const binding = { node: 'a', address: '10.0.0.1', protocol: 'TCP', port: ports[0]?.port ?? 0 } as const;
  return { kind: 'listener', id: listenerId(binding), ...binding, service: uid };
}

test('keeps the view objects of unchanged Services and the last known addresses', async (context) => {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  const publisher = new TablePublisher({ store: store.table });
  await publisher.becomeLeader();
  const services = Array.from({ length: 5 }, (_, index) => serviceEntry(index));
  const publish = async (entries: readonly ServiceEntry[]): Promise<void> => {
    await publisher.publish(tableOf([NODE, ...entries, ...entries.map(listenerOf)]));
    await clock.advance(100);
  };
  await store.suspensions.markComplete();
  await publish(services);
  const listeners = services.map((each) => {
    const { id } = listenerOf(each);
    return { id, service: each.uid, bound: true, listening: true, error: null };
  });
  await store.heartbeats.record({ ...HEARTBEAT, listeners });
  let changes = 0;
  const watch = new FleetWatch({
    store,
    clock,
    log: silentLogger(),
    onChange: () => {
      changes += 1;
    },
  });
  context.after(() => watch.close());
  await clock.advance(2_000);
  await watch.refresh();
  const before = watch.views();
  assert.deepEqual(
    before.map(({ state, addresses }) => `${state} ${addresses}`),
    services.map(() => 'Programmed 192.0.2.1'),
  );
  const changesBefore = changes;
  const degraded = [{ reason: 'NodePortBypass', message: 'node ports are open' }] as const;
  await publish(services.map((each, index) => (index === 2 ? { ...each, degraded } : each)));
  assert.ok(changes > changesBefore);
  const after = watch.views();
  assert.deepEqual(
    after.map((each, index) => each === before[index]),
    [true, true, false, true, true],
  );
  assert.equal(watch.views(), after, 'the list is the same object without a change');
  await clock.advance(10_000);
  assert.deepEqual(watch.fleet().heartbeats, [], 'the proxy is silent');
  assert.deepEqual(
    watch.views().map(({ addresses }) => addresses),
    services.map(() => ['192.0.2.1']),
  );
  assert.deepEqual(watch.fleet().previousAddresses.get('web2'), ['192.0.2.1']);
});

const HEARTBEAT: Omit<Heartbeat, 'listeners'> = {
  node: 'a',
  life: 1,
  version: '0',
  startedAt: 0,
  draining: false,
  addresses: ['10.0.0.1'],
  applied: null,
  cutoffSequence: 0,
  workers: 1,
  connections: 0,
};
