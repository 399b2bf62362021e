import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import {
  type Cutoff,
  DEFAULT_SETTINGS,
  entriesOf,
  type Heartbeat,
  minuteOf,
  monthOf,
  type ServiceView,
} from '@weir/model';
import { ManualClock, silentLogger } from '@weir/runtime';
import { createMemoryStore, type MemoryStore } from '@weir/store';
import { type Controller, type ControllerOptions, startController } from '../../src/control/start-controller.ts';
import type { Leadership } from '../../src/leader/leadership.ts';
import { FakeSource, nodeObject, serviceObject, suspensionObject } from '../fixtures/fake-source.ts';

interface World {
  readonly clock: ManualClock;
  readonly store: MemoryStore;
  readonly source: FakeSource;
  readonly controller: Controller;
  /** Time passes, and everything that it brings is done. */
  pass(ms: number): Promise<void>;
}

interface WorldOptions extends Partial<ControllerOptions> {
  readonly source?: FakeSource;
  readonly store?: MemoryStore;
  readonly clock?: ManualClock;
}

async function world(context: TestContext, options: WorldOptions = {}): Promise<World> {
  const clock = options.clock ?? new ManualClock();
  const store = options.store ?? createMemoryStore({ clock });
  const source =
    options.source ?? new FakeSource({ nodes: [nodeObject('a', '10.0.0.1')], services: [serviceObject('web')] });
  const controller = startController({
    settings: DEFAULT_SETTINGS,
    log: silentLogger(),
    ...options,
    clock,
    store,
    source,
  });
  context.after(() => controller.close());
  const pass = (ms: number): Promise<void> => clock.advance(ms);
  await pass(10);
  return { clock, store, source, controller, pass };
}

async function served(store: MemoryStore): Promise<string[]> {
  const copy = await store.table.read();
  return copy === undefined
    ? ['nothing']
    : entriesOf(copy.table, 'service')
        .map((each) => each.name)
        .sort();
}

const heartbeat = (node: string, bound: readonly string[], change: Partial<Heartbeat> = {}): Heartbeat => ({
  node,
  life: 1,
  version: '0',
  startedAt: 0,
  draining: false,
  addresses: [],
  applied: null,
  cutoffSequence: 0,
  listeners: bound.map((service) => ({
    id: `listener/${node}/10.0.0.${node === 'a' ? 1 : 2}/TCP/80`,
    service,
    bound: true,
    listening: true,
    error: null,
  })),
  workers: 1,
  connections: 0,
  ...change,
});

describe('the table', () => {
  test('holds what the source says, soon after it says so, and nothing is written when it says the same', async (context) => {
    const { store, source, pass } = await world(context);
    assert.deepEqual(await served(store), ['web']);
    source.set({ services: [serviceObject('web'), serviceObject('api', { ports: [] })] });
    await pass(10);
    assert.deepEqual(await served(store), ['api', 'web']);
    const before = await store.table.meta();
    source.set({ services: [serviceObject('web'), serviceObject('api', { ports: [] })] });
    await pass(2_000);
    assert.deepEqual(await store.table.meta(), before);
  });

  test('keeps a port with the Service that had it first', async (context) => {
    const { store, source, pass } = await world(context);
    source.set({ services: [serviceObject('aaa'), serviceObject('web')] });
    await pass(10);
    const table = (await store.table.read())?.table;
    assert.ok(table);
    assert.deepEqual(
      entriesOf(table, 'listener').map((each) => each.service),
      ['uid-web'],
    );
  });

  test('of a store that was away is brought up to date when it is back', async (context) => {
    const { store, source, controller, pass } = await world(context);
    store.faults.goAway();
    source.set({ services: [] });
    await pass(5_000);
    assert.equal(
      controller.problems().some((each) => each.subject === 'Service shop/web'),
      false,
    );
    store.faults.comeBack();
    await pass(1_000);
    assert.deepEqual(await served(store), []);
  });

  test('is published whole in a new epoch when the store was wiped, whether the connection broke or not', async (context) => {
    const { store, pass } = await world(context);
    const before = await store.table.meta();
    store.faults.wipe();
    await pass(3_000);
    assert.deepEqual(await served(store), ['web']);
    const after = await store.table.meta();
    assert.ok((after?.epoch ?? 0) > (before?.epoch ?? 0));
  });

  test('is taken over as it stands by the next controller', async (context) => {
    const { store, clock, source, controller } = await world(context);
    await controller.close();
    const before = await store.table.meta();
    const others = [serviceObject('aaa'), ...source.snapshot().services];
    const next = await world(context, { store, clock, source: new FakeSource({ ...source.snapshot() }) });
    const after = await store.table.meta();
    assert.deepEqual({ ...after, leader: before?.leader }, before);
    next.source.set({ services: others });
    await next.pass(10);
    const table = (await store.table.read())?.table;
    assert.ok(table);
    assert.deepEqual(
      entriesOf(table, 'listener').map((each) => each.service),
      ['uid-web'],
      'what is held stays held',
    );
  });
});

test('the ledger of a wiped store goes on from what the controller remembers', async (context) => {
  const { store, clock, pass } = await world(context);
  const counters = { receivedBytes: 1_000, sentBytes: 0, connections: 1, requests: 0 };
  const slot = { service: 'uid-web', tenant: 'shop', namespace: 'shop', name: 'web' };
  const points = [{ minute: minuteOf(clock.now()), counters }];
  const report = { node: 'a', life: 1, slots: [{ ...slot, points }] };
  await pass(2_000);
  assert.deepEqual(await store.usage.flush(report), { kind: 'accepted' });
  await pass(320_000);
  store.faults.wipe();
  await pass(5_000);
  assert.deepEqual(await store.usage.flush(report), { kind: 'accepted' });
  assert.deepEqual(await store.usage.rows(monthOf(clock.now())), [{ ...slot, counters }]);
});

describe('a controller that does not lead', () => {
  function leadership(isLeader: boolean): Leadership & { set(isLeader: boolean): void } {
    const listeners = new Set<() => void>();
    return {
      isLeader,
      onChange(listener) {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
      recheck: async () => undefined,
      close: async () => undefined,
      set(this: { isLeader: boolean }, value) {
        this.isLeader = value;
        for (const listener of listeners) listener();
      },
    };
  }

  test('writes nothing until it does', async (context) => {
    const leader = leadership(false);
    const { store, pass } = await world(context, { leader });
    await pass(2_000);
    assert.deepEqual(await served(store), ['nothing']);
    leader.set(true);
    await pass(10);
    assert.deepEqual(await served(store), ['web']);
  });

  test('steps back when another has claimed the store after it', async (context) => {
    const leader = leadership(true);
    leader.recheck = async () => leader.set(false);
    const { store, source, pass, controller } = await world(context, { leader });
    await store.table.claimLeader();
    const before = await store.table.meta();
    source.set({ services: [] });
    await pass(5_000);
    assert.deepEqual(await store.table.meta(), before);
    assert.equal(controller.translation(), undefined);
  });

  test('claims the lead again when it is still the elected one', async (context) => {
    const { store, source, pass } = await world(context);
    await store.table.claimLeader();
    source.set({ services: [] });
    await pass(5_000);
    assert.deepEqual(await served(store), []);
  });
});

describe('a Suspension', () => {
  const names = async (store: MemoryStore): Promise<string[]> =>
    (await store.cutoffs.read()).cutoffs.map((each) => each.name);

  test('is in force at once, and lifted only when it is known to be deleted', async (context) => {
    const { store, source, pass } = await world(context);
    assert.equal((await store.cutoffs.read()).complete, true);
    source.set({ suspensions: [suspensionObject('x')] });
    await pass(10);
    assert.deepEqual(await names(store), ['x']);
    source.set({ suspensions: [] });
    await pass(2_000);
    assert.deepEqual(await names(store), ['x'], 'absence alone is no proof');
    source.deleted.add('uid-x');
    source.set({});
    await pass(10);
    assert.deepEqual(await names(store), []);
  });

  test('that was deleted while no controller ran is lifted by the next one', async (context) => {
    const { store, clock, source, controller, pass } = await world(context);
    source.set({ suspensions: [suspensionObject('x')] });
    await pass(10);
    await controller.close();
    const next = new FakeSource({});
    next.deleted.add('uid-x');
    await world(context, { store, clock, source: next });
    assert.deepEqual(await names(store), []);
  });

  test('ends at its time, to the millisecond, and is then deleted', async (context) => {
    const deleted: string[] = [];
    const clock = new ManualClock();
    const { store, source, pass } = await world(context, {
      clock,
      deleteSuspension: async (cutoff) => void deleted.push(cutoff.name),
    });
    source.set({ suspensions: [suspensionObject('x', { until: clock.now() + 60_000 })] });
    await pass(59_000);
    assert.deepEqual([await names(store), deleted], [['x'], []]);
    await pass(1_020);
    assert.deepEqual([await names(store), deleted], [[], ['x']]);
  });

  test('whose end is brought forward into the past is over', async (context) => {
    const { clock, store, source, pass } = await world(context);
    source.set({ suspensions: [suspensionObject('x', { until: clock.now() + 60_000 })] });
    await pass(10);
    source.set({ suspensions: [suspensionObject('x', { until: clock.now() - 1 })] });
    await pass(10);
    assert.deepEqual(await names(store), []);
  });

  test('made in the store itself is left alone, and put back when the store was wiped', async (context) => {
    const { store, source, pass } = await world(context);
    const own: Cutoff = {
      uid: 'request-1',
      name: 'by-console',
      target: { kind: 'service', namespace: 'shop', service: 'web' },
      message: '',
      until: null,
      reason: 'SuspendedByOperator',
      origin: { kind: 'store' },
      createdAt: null,
    };
    await store.cutoffs.put(own);
    source.set({ suspensions: [suspensionObject('x')] });
    await pass(2_000);
    assert.deepEqual(await names(store), ['by-console', 'x']);
    store.faults.wipe();
    await pass(3_000);
    assert.deepEqual(await names(store), ['by-console', 'x']);
    assert.equal((await store.cutoffs.read()).complete, true);
    await store.cutoffs.remove(own.uid);
    await pass(2_000);
    store.faults.wipe();
    await pass(3_000);
    assert.deepEqual(await names(store), ['x'], 'what a person lifted stays lifted');
  });
});

describe('what Services are told', () => {
  interface Told extends World {
    /** `web 10.0.0.1,10.0.0.2 Programmed` for each, as last written. */
    readonly lines: () => string[];
    readonly writes: () => number;
  }

  async function told(context: TestContext, options: WorldOptions = {}): Promise<Told> {
    let views: readonly ServiceView[] = [];
    let writes = 0;
    const source =
      options.source ??
      new FakeSource({
        nodes: [nodeObject('a', '10.0.0.1'), nodeObject('b', '10.0.0.2')],
        services: [serviceObject('web')],
      });
    const status = {
      observed: 0,
      async write(next: readonly ServiceView[]): Promise<'done'> {
        views = next;
        writes += 1;
        return 'done';
      },
    };
    return {
      ...(await world(context, { ...options, source, status })),
      lines: () => views.map((view) => `${view.name} ${view.addresses.join() || '-'} ${view.reason}`),
      writes: () => writes,
    };
  }

  /** The proxies beat once a second, as real ones do. */
  async function live({ store, pass }: World, seconds: number, beats: readonly Heartbeat[]): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      for (const each of beats) await store.heartbeats.beat(each);
      await pass(1_000);
    }
  }

  const a = heartbeat('a', ['uid-web']);
  const b = heartbeat('b', ['uid-web']);

  test('is an address as soon as a proxy has confirmed it, and nothing is written for the same again', async (context) => {
    const world = await told(context);
    await world.pass(300);
    assert.deepEqual(world.lines(), ['web - WaitingForProxy']);
    await world.store.heartbeats.beat(a);
    await world.pass(300);
    assert.deepEqual(world.lines(), ['web 10.0.0.1 Programmed']);
    await live(world, 15, [a, b]);
    assert.deepEqual(world.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
    const before = world.writes();
    await live(world, 10, [a, { ...b, connections: 7 }]);
    assert.equal(world.writes(), before);
  });

  test('loses the address of a proxy that died, but never the last one', async (context) => {
    const world = await told(context);
    await live(world, 15, [a, b]);
    await live(world, 5, [a]);
    assert.deepEqual(world.lines(), ['web 10.0.0.1 Programmed']);
    await live(world, 30, []);
    assert.deepEqual(world.lines(), ['web 10.0.0.1 Programmed']);
  });

  test('stays as it is while the store is away, and for 10 s after', async (context) => {
    const world = await told(context);
    await live(world, 15, [a, b]);
    world.store.faults.goAway();
    await world.pass(60_000);
    assert.deepEqual(world.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
    world.store.faults.comeBack();
    await live(world, 9, [a]);
    assert.deepEqual(world.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
    await live(world, 4, [a]);
    assert.deepEqual(world.lines(), ['web 10.0.0.1 Programmed']);
  });

  test('stays as it is for 10 s under a new leader, who knows the addresses from the Services', async (context) => {
    const services = [serviceObject('web', { publishedIPs: ['10.0.0.1', '10.0.0.2'] })];
    const nodes = [nodeObject('a', '10.0.0.1'), nodeObject('b', '10.0.0.2')];
    const world = await told(context, { source: new FakeSource({ nodes, services }) });
    await live(world, 9, [b]);
    assert.deepEqual(world.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
    await live(world, 4, [b]);
    assert.deepEqual(world.lines(), ['web 10.0.0.2 Programmed']);
  });

  test('is that it is suspended, also when the console did it in the store, and the address stays', async (context) => {
    const world = await told(context);
    await live(world, 12, [a, b]);
    world.source.set({ suspensions: [suspensionObject('x', { until: world.clock.now() + 5_000 })] });
    await live(world, 2, [a, b]);
    assert.deepEqual(world.lines(), ['web 10.0.0.1,10.0.0.2 SuspendedByOperator']);
    await live(world, 5, [a, b]);
    assert.deepEqual(world.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
  });
});

test('closing leaves no timer behind', async (context) => {
  const { clock, controller, source, pass } = await world(context);
  source.set({ suspensions: [suspensionObject('x', { until: clock.now() + 60_000 })] });
  await pass(10);
  assert.ok(clock.timers > 0);
  await controller.close();
  assert.equal(clock.timers, 0);
});
