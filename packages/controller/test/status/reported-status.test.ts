import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { EMPTY_TABLE, entriesOf, type Heartbeat, type ServiceObject, type ServiceView } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import type { DesiredViews } from '../../src/status/status-sink.ts';
import {
  type ControllerHarness,
  type ControllerHarnessOptions,
  heartbeat,
  servedServices,
  startControllerHarness,
} from '../fixtures/controller-harness.ts';
import { createFakeLeadership } from '../fixtures/fake-leadership.ts';
import { FakeSource, nodeObject, serviceObject, suspensionObject } from '../fixtures/fake-source.ts';

describe('what Services are told', () => {
  interface Told extends ControllerHarness {
    /** `web 10.0.0.1,10.0.0.2 Programmed` for each, as last written. */
    readonly lines: () => string[];
    readonly writes: () => number;
  }

  async function told(context: TestContext, options: ControllerHarnessOptions = {}): Promise<Told> {
    let views: readonly ServiceView[] = [];
    let writes = 0;
    const source =
      options.source ??
      new FakeSource({
        nodes: [nodeObject('a', '10.0.0.1'), nodeObject('b', '10.0.0.2')],
        services: [serviceObject('web')],
      });
    const status = {
      observedRevision: 0,
      setDesired(next: DesiredViews): void {
        views = next.views;
      },
      async write(): Promise<'complete'> {
        writes += 1;
        return 'complete';
      },
    };
    return {
      ...(await startControllerHarness(context, { ...options, source, status })),
      lines: () => views.map((view) => `${view.name} ${view.addresses.join() || '-'} ${view.reason}`),
      writes: () => writes,
    };
  }

  /** The proxies beat once a second, as real ones do. */
  async function live(
    { store, advance }: ControllerHarness,
    seconds: number,
    beats: readonly Heartbeat[],
  ): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      for (const each of beats) await store.heartbeats.record(each);
      await advance(1_000);
    }
  }

  const a = heartbeat('a', ['uid-web']);
  const b = heartbeat('b', ['uid-web']);

  test('matters not for who is given up: a proxy that stays away is, also while nobody can be told', async (context) => {
    const status = {
      observedRevision: 0,
      setDesired: () => undefined,
      write: () => Promise.reject(new Error('the API server fails')),
    };
    const nodes = [nodeObject('a', '10.0.0.1'), nodeObject('b', '10.0.0.2')];
    const source = new FakeSource({ nodes, services: [serviceObject('web')] });
    const world = await startControllerHarness(context, { source, status });
    await live(world, 320, [a]);
    assert.ok(
      world.controller.problems().some(({ code, subject }) => code === 'NoNodes' && /^Node\b.*\bb$/.test(subject)),
    );
  });

  test('is an address as soon as a proxy has confirmed it, and nothing is written for the same again', async (context) => {
    const world = await told(context);
    await world.advance(300);
    assert.deepEqual(world.lines(), ['web - WaitingForProxy']);
    await world.store.heartbeats.record(a);
    await world.advance(300);
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
    await world.advance(60_000);
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

  test('comes from the Services again when a controller leads a second time: another has told them meanwhile', async (context) => {
    const leader = createFakeLeadership();
    const world = await told(context, { leader });
    const lead = async (isLeader: boolean): Promise<void> => {
      leader.set(isLeader);
      await world.advance(100);
    };
    await live(world, 15, [a, b]);
    await lead(false);
    world.source.set({ services: [serviceObject('web', { publishedIPs: ['10.0.0.2'] })] });
    await live(world, 5, [b]);
    await lead(true);
    await live(world, 3, [b]);
    assert.deepEqual(world.lines(), ['web 10.0.0.2 Programmed']);
  });

  test('keeps the address of a proxy whose version is not understood, and gets no new one there', async (context) => {
    const world = await told(context);
    await live(world, 15, [a, b]);
    const services = [serviceObject('web', { publishedIPs: ['10.0.0.1', '10.0.0.2'] })];
    world.source.set({ services });
    const stranger = heartbeat('a', [], { life: 2, unreadable: 'of another version' });
    await live(world, 1, [{ ...a, draining: true }, b, stranger]);
    await live(world, 400, [b, stranger]);
    assert.deepEqual(world.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
    const port = { name: null, port: 81, protocol: 'TCP', appProtocol: null, nodePort: null };
    world.source.set({ services: [...services, serviceObject('new', { ports: [port] })] });
    const at81 = { id: 'listener/b/10.0.0.2/TCP/81', service: 'uid-new', bound: true, listening: true, error: null };
    await live(world, 15, [{ ...b, listeners: [...b.listeners, at81] }, stranger]);
    assert.deepEqual(world.lines(), ['new 10.0.0.2 Programmed', 'web 10.0.0.1,10.0.0.2 Programmed']);
    await live(world, 5, [b]);
    assert.match(world.lines()[1] ?? '', /^web 10\.0\.0\.2 /, 'one that is gone is gone');
  });

  test('keeps the address of such a proxy under a new leader, too', async (context) => {
    const services = [serviceObject('web', { publishedIPs: ['10.0.0.1', '10.0.0.2'] })];
    const nodes = [nodeObject('a', '10.0.0.1'), nodeObject('b', '10.0.0.2')];
    const world = await told(context, { source: new FakeSource({ nodes, services }) });
    await live(world, 30, [b, heartbeat('a', [], { unreadable: 'of another version' })]);
    assert.deepEqual(world.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
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

  describe('when the proxy of a node stays away', () => {
    const nodes = ['a', 'b', 'c'].map((name, index) => nodeObject(name, `10.0.0.${index + 1}`));
    const nodesOf = async ({ store }: ControllerHarness): Promise<readonly string[]> =>
      entriesOf((await store.table.read())?.table ?? EMPTY_TABLE, 'service').flatMap((each) => each.nodes);
    const beatOf = (name: string): Heartbeat => {
      const [listener] = heartbeat('a', ['uid-web']).listeners;
      const id = `listener/${name}/10.0.0.${'abc'.indexOf(name) + 1}/TCP/80`;
      return heartbeat(name, [], { listeners: listener === undefined ? [] : [{ ...listener, id }] });
    };

    const portOf = (port: number): ServiceObject['ports'][number] => ({
      name: null,
      port,
      protocol: 'TCP',
      appProtocol: null,
      nodePort: null,
    });
    const placedIn = ({ table }: MemoryStore): readonly string[] =>
      [...table.content.entries.values()]
        .flatMap((entry) => (entry.kind === 'service' ? [`${entry.name} ${entry.nodes.join()}`] : []))
        .sort();

    test('another takes its place after five minutes, and who is back finds it taken', async (context) => {
      const source = new FakeSource({ nodes, services: [serviceObject('web')] });
      const world = await told(context, { source });
      const [gone = '', stays = ''] = await nodesOf(world);
      const third = ['a', 'b', 'c'].find((name) => name !== gone && name !== stays) ?? '';
      await live(world, 3, ['a', 'b', 'c'].map(beatOf));
      const others = [stays, third].map(beatOf);
      await live(world, 290, others);
      assert.deepEqual(await nodesOf(world), [gone, stays]);
      await live(world, 20, others);
      assert.deepEqual(await nodesOf(world), [stays, third].sort());
      await live(world, 30, ['a', 'b', 'c'].map(beatOf));
      assert.deepEqual(await nodesOf(world), [stays, third].sort());
      assert.equal(world.lines()[0]?.split(' ')[2], 'Programmed');
    });

    test('nothing new is put there by a controller that begins to lead, and what is there stays', async (context) => {
      const services = [serviceObject('web')];
      const first = await told(context, { source: new FakeSource({ nodes, services }) });
      const [gone = '', other = ''] = await nodesOf(first);
      const third = nodes.find(({ name }) => name !== gone && name !== other)?.name ?? '';
      await first.controller.close();
      for (const name of [gone, other]) await first.store.heartbeats.beginIncarnation(name, 1);
      for (const name of [other, third]) await first.store.heartbeats.record(beatOf(name));
      const added = [...services, serviceObject('new', { ports: [portOf(81)] })];
      const { store } = first;
      const second = await startControllerHarness(context, {
        store,
        source: new FakeSource({ nodes, services: added }),
        status: { observedRevision: 0, setDesired: () => undefined, write: async () => 'complete' },
      });
      await live(second, 4, [other, third].map(beatOf));
      assert.deepEqual(placedIn(store), [`new ${[other, third].sort().join()}`, `web ${[gone, other].sort().join()}`]);
      const { revisions } = store.table.content;
      assert.equal(revisions.length, 2, 'known before the first decision, and not corrected by a second one');
    });

    test('in a store that comes back together with the controller, new Services wait for those who beat a moment later', async (context) => {
      const services = [serviceObject('web'), serviceObject('api', { ports: [portOf(81)] })];
      const undisturbed = await told(context, { source: new FakeSource({ nodes, services }) });
      const expected = placedIn(undisturbed.store);
      const clock = new ManualClock();
      const store = new MemoryStore({ clock });
      for (const { name } of nodes) await store.heartbeats.beginIncarnation(name, 1);
      await store.heartbeats.record(beatOf('a'));
      const world = await startControllerHarness(context, {
        clock,
        store,
        source: new FakeSource({ nodes, services }),
        status: { observedRevision: 0, setDesired: () => undefined, write: async () => 'complete' },
      });
      await live(world, 1, [beatOf('a')]);
      assert.deepEqual(await servedServices(store), ['nothing']);
      await live(world, 1, ['a', 'b', 'c'].map(beatOf));
      assert.deepEqual(placedIn(store), expected);
      assert.equal(store.table.content.revisions.length, 1);
    });

    test('a controller that has long been connected decides at once when it begins to lead', async (context) => {
      const leader = createFakeLeadership(false);
      const world = await told(context, {
        leader,
        source: new FakeSource({ nodes, services: [serviceObject('web')] }),
      });
      for (const { name } of nodes) await world.store.heartbeats.beginIncarnation(name, 1);
      await live(world, 10, ['a', 'b'].map(beatOf));
      leader.set(true);
      await world.advance(10);
      assert.deepEqual(placedIn(world.store), ['web a,b']);
    });

    test('a store that is lost again and again does not put off the first decision for ever', async (context) => {
      const clock = new ManualClock();
      const store = new MemoryStore({ clock });
      for (const { name } of nodes) await store.heartbeats.beginIncarnation(name, 1);
      const source = new FakeSource({ nodes, services: [serviceObject('web')] });
      const world = await told(context, { clock, store, source });
      for (let second = 0; second < 8; second += 1) {
        store.faults.goAway();
        store.faults.comeBack();
        await live(world, 1, ['a', 'b'].map(beatOf));
      }
      assert.deepEqual(placedIn(store), ['web a,b']);
    });

    test('who loses the lead while it waits for proxies to be heard decides nothing', async (context) => {
      const leader = createFakeLeadership();
      const store = new MemoryStore({ clock: new ManualClock() });
      for (const { name } of nodes) await store.heartbeats.beginIncarnation(name, 1);
      const world = await told(context, { leader, store });
      leader.set(false);
      await world.advance(10_000);
      assert.deepEqual(await servedServices(store), ['nothing']);
    });

    test('time in which the store does not answer does not count', async (context) => {
      const source = new FakeSource({ nodes, services: [serviceObject('web')] });
      const world = await told(context, { source });
      const [gone = '', stays = ''] = await nodesOf(world);
      const others = ['a', 'b', 'c'].filter((name) => name !== gone).map(beatOf);
      await live(world, 200, others);
      world.store.faults.goAway();
      await world.advance(600_000);
      world.store.faults.comeBack();
      await live(world, 60, others);
      assert.deepEqual(await nodesOf(world), [gone, stays]);
      await live(world, 60, others);
      assert.ok(!(await nodesOf(world)).includes(gone));
    });
  });
});
