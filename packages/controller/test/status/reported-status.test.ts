import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EMPTY_TABLE, entriesOf, type Heartbeat, type ServiceObject } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import {
  type ControllerHarness,
  heartbeat,
  servedServices,
  startControllerHarness,
} from '../fixtures/controller-harness.ts';
import { createFakeLeadership } from '../fixtures/fake-leadership.ts';
import { FakeSource, nodeObject, serviceObject, suspensionObject } from '../fixtures/fake-source.ts';
import { runWithHeartbeats as run, startReportedStatus as start } from '../fixtures/reported-status.ts';

describe('the reported status of Services', () => {
  const a = heartbeat('a', ['uid-web']);
  const b = heartbeat('b', ['uid-web']);

  test('does not delay the replacement of a lost node if status writes fail', async (context) => {
    const status = {
      observedRevision: 0,
      setDesired: () => undefined,
      write: () => Promise.reject(new Error('the API server fails')),
    };
    const nodes = [nodeObject('a', '10.0.0.1'), nodeObject('b', '10.0.0.2')];
    const source = new FakeSource({ nodes, services: [serviceObject('web')] });
    const harness = await startControllerHarness(context, { source, status });
    await run(harness, 320, [a]);
    assert.ok(
      harness.controller.problems().some(({ code, subject }) => code === 'NoNodes' && /^Node\b.*\bb$/.test(subject)),
    );
  });

  test('has an address as soon as a proxy has confirmed it, and is not written again without a change', async (context) => {
    const harness = await start(context);
    await harness.advance(300);
    assert.deepEqual(harness.lines(), ['web - WaitingForProxy']);
    await harness.store.heartbeats.record(a);
    await harness.advance(300);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1 Programmed']);
    await run(harness, 15, [a, b]);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
    const before = harness.writes();
    await run(harness, 10, [a, { ...b, connections: 7 }]);
    assert.equal(harness.writes(), before);
  });

  test('loses the address of a dead proxy, but never the last address', async (context) => {
    const harness = await start(context);
    await run(harness, 15, [a, b]);
    await run(harness, 5, [a]);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1 Programmed']);
    await run(harness, 30, []);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1 NoProxy']);
  });

  test('does not change while the store is unreachable, and for 10 s afterwards', async (context) => {
    const harness = await start(context);
    await run(harness, 15, [a, b]);
    harness.store.faults.goAway();
    await harness.advance(60_000);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
    harness.store.faults.comeBack();
    await run(harness, 9, [a]);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
    await run(harness, 4, [a]);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1 Programmed']);
  });

  test('loses the address of a dead proxy if the store is unreachable for a second every 10 s', async (context) => {
    const harness = await start(context);
    const interrupt = async (): Promise<void> => {
      harness.store.faults.goAway();
      await harness.advance(1_000);
      harness.store.faults.comeBack();
    };
    await run(harness, 15, [a, b]);
    await interrupt();
    for (let time = 0; time < 40; time += 1) {
      if (time === 3) assert.deepEqual(harness.lines(), ['web 10.0.0.1 Programmed']);
      await run(harness, 9, [a]);
      await interrupt();
    }
    assert.deepEqual(harness.lines(), ['web 10.0.0.1 Programmed']);
    const lost = harness.controller.problems().filter(({ code }) => code === 'NoNodes');
    assert.deepEqual(
      lost.map(({ subject }) => subject),
      ['Node b'],
      'the node is given up after five minutes',
    );
  });

  test('does not change for 10 s under a new leader, which reads the addresses from the Services', async (context) => {
    const services = [serviceObject('web', { publishedIPs: ['10.0.0.1', '10.0.0.2'] })];
    const nodes = [nodeObject('a', '10.0.0.1'), nodeObject('b', '10.0.0.2')];
    const harness = await start(context, { source: new FakeSource({ nodes, services }) });
    await run(harness, 9, [b]);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
    await run(harness, 4, [b]);
    assert.deepEqual(harness.lines(), ['web 10.0.0.2 Programmed']);
  });

  test('is read from the Services again in a second term, since another leader has written meanwhile', async (context) => {
    const leader = createFakeLeadership();
    const harness = await start(context, { leader });
    const lead = async (isLeader: boolean): Promise<void> => {
      leader.set(isLeader);
      await harness.advance(100);
    };
    await run(harness, 15, [a, b]);
    await lead(false);
    harness.source.set({ services: [serviceObject('web', { publishedIPs: ['10.0.0.2'] })] });
    await run(harness, 5, [b]);
    await lead(true);
    await run(harness, 3, [b]);
    assert.deepEqual(harness.lines(), ['web 10.0.0.2 Programmed']);
  });

  test('keeps the address of an unknown-version proxy, and gets no new address there', async (context) => {
    const harness = await start(context);
    await run(harness, 15, [a, b]);
    const services = [serviceObject('web', { publishedIPs: ['10.0.0.1', '10.0.0.2'] })];
    harness.source.set({ services });
    const unknownVersion = heartbeat('a', [], { life: 2, unreadable: 'of another version' });
    await run(harness, 1, [{ ...a, draining: true }, b, unknownVersion]);
    await run(harness, 400, [b, unknownVersion]);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
    const port = { name: null, port: 81, protocol: 'TCP', appProtocol: null, nodePort: null };
    harness.source.set({ services: [...services, serviceObject('new', { ports: [port] })] });
    const at81 = { id: 'listener/b/10.0.0.2/TCP/81', service: 'uid-new', bound: true, listening: true, error: null };
    await run(harness, 15, [{ ...b, listeners: [...b.listeners, at81] }, unknownVersion]);
    assert.deepEqual(harness.lines(), ['new 10.0.0.2 Programmed', 'web 10.0.0.1,10.0.0.2 Programmed']);
    await run(harness, 5, [b]);
    assert.match(harness.lines()[1] ?? '', /^web 10\.0\.0\.2 /, 'the address of a dead proxy is withdrawn');
  });

  test('keeps the address of an unknown-version proxy under a new leader', async (context) => {
    const services = [serviceObject('web', { publishedIPs: ['10.0.0.1', '10.0.0.2'] })];
    const nodes = [nodeObject('a', '10.0.0.1'), nodeObject('b', '10.0.0.2')];
    const harness = await start(context, { source: new FakeSource({ nodes, services }) });
    await run(harness, 30, [b, heartbeat('a', [], { unreadable: 'of another version' })]);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
  });

  test('shows a suspension, and keeps the addresses', async (context) => {
    const harness = await start(context);
    await run(harness, 12, [a, b]);
    harness.source.set({ suspensions: [suspensionObject('x', { until: harness.clock.now() + 5_000 })] });
    await run(harness, 2, [a, b]);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1,10.0.0.2 SuspendedByOperator']);
    await run(harness, 5, [a, b]);
    assert.deepEqual(harness.lines(), ['web 10.0.0.1,10.0.0.2 Programmed']);
  });

  describe('of an unreachable node', () => {
    const nodes = ['a', 'b', 'c'].map((name, index) => nodeObject(name, `10.0.0.${index + 1}`));
    const nodesOf = async ({ store }: ControllerHarness): Promise<readonly string[]> =>
      entriesOf((await store.table.read())?.table ?? EMPTY_TABLE, 'service').flatMap((each) => each.nodes);
    const heartbeatOf = (name: string): Heartbeat => {
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

    test('moves to another node after five minutes, and does not move back', async (context) => {
      const source = new FakeSource({ nodes, services: [serviceObject('web')] });
      const harness = await start(context, { source });
      const [lostNode = '', otherNode = ''] = await nodesOf(harness);
      const third = ['a', 'b', 'c'].find((name) => name !== lostNode && name !== otherNode) ?? '';
      await run(harness, 3, ['a', 'b', 'c'].map(heartbeatOf));
      const others = [otherNode, third].map(heartbeatOf);
      await run(harness, 290, others);
      assert.deepEqual(await nodesOf(harness), [lostNode, otherNode]);
      await run(harness, 20, others);
      assert.deepEqual(await nodesOf(harness), [otherNode, third].sort());
      await run(harness, 30, ['a', 'b', 'c'].map(heartbeatOf));
      assert.deepEqual(await nodesOf(harness), [otherNode, third].sort());
      assert.equal(harness.lines()[0]?.split(' ')[2], 'Programmed');
    });

    test('stays under a new leader, which allocates nothing new to the node', async (context) => {
      const services = [serviceObject('web')];
      const first = await start(context, { source: new FakeSource({ nodes, services }) });
      const [lostNode = '', other = ''] = await nodesOf(first);
      const third = nodes.find(({ name }) => name !== lostNode && name !== other)?.name ?? '';
      await first.controller.close();
      for (const name of [lostNode, other]) await first.store.heartbeats.beginIncarnation(name, 1);
      for (const name of [other, third]) await first.store.heartbeats.record(heartbeatOf(name));
      const withNew = [...services, serviceObject('new', { ports: [portOf(81)] })];
      const { store } = first;
      const second = await startControllerHarness(context, {
        store,
        source: new FakeSource({ nodes, services: withNew }),
        status: { observedRevision: 0, setDesired: () => undefined, write: async () => 'complete' },
      });
      await run(second, 4, [other, third].map(heartbeatOf));
      assert.deepEqual(placedIn(store), [
        `new ${[other, third].sort().join()}`,
        `web ${[lostNode, other].sort().join()}`,
      ]);
      const { revisions } = store.table.content;
      assert.equal(revisions.length, 2, 'the node was known as unreachable before the first translation');
    });

    test('waits for proxies that reconnect to a restarted store a moment later than the controller', async (context) => {
      const services = [serviceObject('web'), serviceObject('api', { ports: [portOf(81)] })];
      const undisturbed = await start(context, { source: new FakeSource({ nodes, services }) });
      const expected = placedIn(undisturbed.store);
      const clock = new ManualClock();
      const store = new MemoryStore({ clock });
      for (const { name } of nodes) await store.heartbeats.beginIncarnation(name, 1);
      await store.heartbeats.record(heartbeatOf('a'));
      const harness = await startControllerHarness(context, {
        clock,
        store,
        source: new FakeSource({ nodes, services }),
        status: { observedRevision: 0, setDesired: () => undefined, write: async () => 'complete' },
      });
      await run(harness, 1, [heartbeatOf('a')]);
      assert.deepEqual(await servedServices(store), ['nothing']);
      await run(harness, 1, ['a', 'b', 'c'].map(heartbeatOf));
      assert.deepEqual(placedIn(store), expected);
      assert.equal(store.table.content.revisions.length, 1);
    });

    test('is decided at once by a new leader that has long been connected to the store', async (context) => {
      const leader = createFakeLeadership(false);
      const harness = await start(context, {
        leader,
        source: new FakeSource({ nodes, services: [serviceObject('web')] }),
      });
      for (const { name } of nodes) await harness.store.heartbeats.beginIncarnation(name, 1);
      await run(harness, 10, ['a', 'b'].map(heartbeatOf));
      leader.set(true);
      await harness.advance(10);
      assert.deepEqual(placedIn(harness.store), ['web a,b']);
    });

    test('is decided at last if the store connection is lost again and again', async (context) => {
      const clock = new ManualClock();
      const store = new MemoryStore({ clock });
      for (const { name } of nodes) await store.heartbeats.beginIncarnation(name, 1);
      const source = new FakeSource({ nodes, services: [serviceObject('web')] });
      const harness = await start(context, { clock, store, source });
      for (let second = 0; second < 8; second += 1) {
        store.faults.goAway();
        store.faults.comeBack();
        await run(harness, 1, ['a', 'b'].map(heartbeatOf));
      }
      assert.deepEqual(placedIn(store), ['web a,b']);
    });

    test('is not decided by a controller that loses leadership while it waits for proxies', async (context) => {
      const leader = createFakeLeadership();
      const store = new MemoryStore({ clock: new ManualClock() });
      for (const { name } of nodes) await store.heartbeats.beginIncarnation(name, 1);
      const harness = await start(context, { leader, store });
      leader.set(false);
      await harness.advance(10_000);
      assert.deepEqual(await servedServices(store), ['nothing']);
    });

    test('does not move while the store is unreachable', async (context) => {
      const source = new FakeSource({ nodes, services: [serviceObject('web')] });
      const harness = await start(context, { source });
      const [lostNode = '', otherNode = ''] = await nodesOf(harness);
      const others = ['a', 'b', 'c'].filter((name) => name !== lostNode).map(heartbeatOf);
      await run(harness, 200, others);
      harness.store.faults.goAway();
      await harness.advance(600_000);
      harness.store.faults.comeBack();
      await run(harness, 60, others);
      assert.deepEqual(await nodesOf(harness), [lostNode, otherNode]);
      await run(harness, 60, others);
      assert.ok(!(await nodesOf(harness)).includes(lostNode));
    });
  });
});
