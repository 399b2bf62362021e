import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { entriesOf, minuteOf, monthOf, type Suspension } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import { servedServices, startControllerHarness } from '../fixtures/controller-harness.ts';
import { createFakeLeadership } from '../fixtures/fake-leadership.ts';
import { FakeSource, serviceObject, suspensionObject } from '../fixtures/fake-source.ts';

describe('the table', () => {
  test('holds what the source says, soon after it says so, and nothing is written when it says the same', async (context) => {
    const { store, source, advance } = await startControllerHarness(context);
    assert.deepEqual(await servedServices(store), ['web']);
    source.set({ services: [serviceObject('web'), serviceObject('api', { ports: [] })] });
    await advance(10);
    assert.deepEqual(await servedServices(store), ['api', 'web']);
    const before = await store.table.meta();
    source.set({ services: [serviceObject('web'), serviceObject('api', { ports: [] })] });
    await advance(2_000);
    assert.deepEqual(await store.table.meta(), before);
  });

  test('keeps a port with the Service that had it first', async (context) => {
    const { store, source, advance } = await startControllerHarness(context);
    source.set({ services: [serviceObject('aaa'), serviceObject('web')] });
    await advance(10);
    const table = (await store.table.read())?.table;
    assert.ok(table);
    assert.deepEqual(
      entriesOf(table, 'listener').map((each) => each.service),
      ['uid-web'],
    );
  });

  test('of a store that was away is brought up to date when it is back', async (context) => {
    const { store, source, controller, advance } = await startControllerHarness(context);
    store.faults.goAway();
    source.set({ services: [] });
    await advance(5_000);
    assert.equal(
      controller.problems().some((each) => each.subject === 'Service shop/web'),
      false,
    );
    store.faults.comeBack();
    await advance(1_000);
    assert.deepEqual(await servedServices(store), []);
  });

  test('is published whole in a new epoch when the store was wiped, whether the connection broke or not', async (context) => {
    const { store, advance } = await startControllerHarness(context);
    const before = await store.table.meta();
    store.faults.wipe();
    await advance(3_000);
    assert.deepEqual(await servedServices(store), ['web']);
    const after = await store.table.meta();
    assert.ok((after?.epoch ?? 0) > (before?.epoch ?? 0));
  });

  test('is taken over as it stands by the next controller', async (context) => {
    const { store, clock, source, controller } = await startControllerHarness(context);
    await controller.close();
    const before = await store.table.meta();
    const others = [serviceObject('aaa'), ...source.snapshot().services];
    const next = await startControllerHarness(context, {
      store,
      clock,
      source: new FakeSource({ ...source.snapshot() }),
    });
    const after = await store.table.meta();
    assert.deepEqual({ ...after, leader: before?.leader }, before);
    next.source.set({ services: others });
    await next.advance(10);
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
  const { store, clock, advance } = await startControllerHarness(context);
  const counters = { receivedBytes: 1_000, sentBytes: 0, connections: 1, requests: 0 };
  const slot = { service: 'uid-web', tenant: 'shop', namespace: 'shop', name: 'web' };
  const points = [{ minute: minuteOf(clock.now()), counters }];
  const report = { node: 'a', life: 1, slots: [{ ...slot, points }] };
  await advance(2_000);
  assert.deepEqual(await store.usage.flush(report), { kind: 'accepted' });
  await advance(320_000);
  store.faults.wipe();
  await advance(5_000);
  assert.deepEqual(await store.usage.flush(report), { kind: 'accepted' });
  assert.deepEqual(await store.usage.rows(monthOf(clock.now())), [{ ...slot, counters }]);
});

describe('a controller that does not lead', () => {
  test('writes nothing until it does', async (context) => {
    const leader = createFakeLeadership(false);
    const { store, advance } = await startControllerHarness(context, { leader });
    await advance(2_000);
    assert.deepEqual(await servedServices(store), ['nothing']);
    leader.set(true);
    await advance(10);
    assert.deepEqual(await servedServices(store), ['web']);
  });

  test('steps back when another has claimed the store after it', async (context) => {
    const leader = createFakeLeadership();
    leader.recheck = async () => leader.set(false);
    const { store, source, advance, controller } = await startControllerHarness(context, { leader });
    await store.table.claimLeader();
    const before = await store.table.meta();
    source.set({ services: [] });
    await advance(5_000);
    assert.deepEqual(await store.table.meta(), before);
    assert.equal(controller.translation(), undefined);
  });

  test('claims the lead again when it is still the elected one', async (context) => {
    const { store, source, advance } = await startControllerHarness(context);
    await store.table.claimLeader();
    source.set({ services: [] });
    await advance(5_000);
    assert.deepEqual(await servedServices(store), []);
  });
});

describe('a Suspension', () => {
  const names = async (store: MemoryStore): Promise<string[]> =>
    (await store.suspensions.read()).suspensions.map((each) => each.name);

  test('is in force at once, and lifted only when it is known to be deleted', async (context) => {
    const { store, source, advance } = await startControllerHarness(context);
    assert.equal((await store.suspensions.read()).complete, true);
    source.set({ suspensions: [suspensionObject('x')] });
    await advance(10);
    assert.deepEqual(await names(store), ['x']);
    source.set({ suspensions: [] });
    await advance(2_000);
    assert.deepEqual(await names(store), ['x'], 'absence alone is no proof');
    source.deleted.add('uid-x');
    source.set({});
    await advance(10);
    assert.deepEqual(await names(store), []);
  });

  test('is in a new store before the table: what it cuts off must not serve for a moment', async (context) => {
    const seen: string[][] = [];
    const store: MemoryStore = new MemoryStore({
      onChange() {
        if (store.table.content.complete) seen.push([...store.suspensions.content.suspensions.keys()]);
      },
    });
    const source = new FakeSource({ services: [serviceObject('web')], suspensions: [suspensionObject('stop')] });
    await startControllerHarness(context, { store, source });
    assert.deepEqual(seen[0], ['uid-stop']);
  });

  test('is in force also while no table can be made of what the source says', async (context) => {
    const { store, source, advance } = await startControllerHarness(context);
    const twice = [serviceObject('web'), serviceObject('web', { name: 'copy', ports: [] })];
    source.set({ services: twice, suspensions: [suspensionObject('stop')] });
    await advance(10);
    assert.deepEqual(await names(store), ['stop']);
    assert.deepEqual(await servedServices(store), ['web'], 'the last table stays');
  });

  test('that was deleted while no controller ran is lifted by the next one', async (context) => {
    const { store, clock, source, controller, advance } = await startControllerHarness(context);
    source.set({ suspensions: [suspensionObject('x')] });
    await advance(10);
    await controller.close();
    const next = new FakeSource({});
    next.deleted.add('uid-x');
    await startControllerHarness(context, { store, clock, source: next });
    assert.deepEqual(await names(store), []);
  });

  test('ends at its time, to the millisecond, and is then deleted', async (context) => {
    const deleted: string[] = [];
    const clock = new ManualClock();
    const { store, source, advance } = await startControllerHarness(context, {
      clock,
      suspensions: {
        getOrCreate: () => assert.fail('none was asked for'),
        remove: async ({ name }) => void deleted.push(name),
      },
    });
    source.set({ suspensions: [suspensionObject('x', { until: clock.now() + 60_000 })] });
    await advance(59_000);
    assert.deepEqual([await names(store), deleted], [['x'], []]);
    await advance(1_020);
    assert.deepEqual([await names(store), deleted], [[], ['x']]);
  });

  test('whose end is brought forward into the past is over', async (context) => {
    const { clock, store, source, advance } = await startControllerHarness(context);
    source.set({ suspensions: [suspensionObject('x', { until: clock.now() + 60_000 })] });
    await advance(10);
    source.set({ suspensions: [suspensionObject('x', { until: clock.now() - 1 })] });
    await advance(10);
    assert.deepEqual(await names(store), []);
  });

  test('made in the store itself is left alone, and put back when the store was wiped', async (context) => {
    const { store, source, advance } = await startControllerHarness(context);
    const own: Suspension = {
      uid: 'request-1',
      name: 'by-console',
      target: { kind: 'service', namespace: 'shop', service: 'web' },
      message: '',
      until: null,
      reason: 'SuspendedByOperator',
      origin: { kind: 'store' },
      createdAt: null,
    };
    await store.suspensions.put(own);
    source.set({ suspensions: [suspensionObject('x')] });
    await advance(2_000);
    assert.deepEqual(await names(store), ['by-console', 'x']);
    store.faults.wipe();
    await advance(3_000);
    assert.deepEqual(await names(store), ['by-console', 'x']);
    assert.equal((await store.suspensions.read()).complete, true);
    await store.suspensions.remove(own.uid);
    await advance(2_000);
    store.faults.wipe();
    await advance(3_000);
    assert.deepEqual(await names(store), ['x'], 'what a person lifted stays lifted');
  });
});

test('closing leaves no timer behind', async (context) => {
  const { clock, controller, source, advance } = await startControllerHarness(context);
  source.set({ suspensions: [suspensionObject('x', { until: clock.now() + 60_000 })] });
  await advance(10);
  assert.ok(clock.pendingTimers > 0);
  await controller.close();
  assert.equal(clock.pendingTimers, 0);
});
