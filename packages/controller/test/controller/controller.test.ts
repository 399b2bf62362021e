import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { entriesOf, minuteOf, monthOf, type Suspension } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import { servedServices, startControllerHarness } from '../fixtures/controller-harness.ts';
import { createFakeLeadership } from '../fixtures/fake-leadership.ts';
import { FakeSource, serviceObject, suspensionObject } from '../fixtures/fake-source.ts';

describe('the routing table', () => {
  test('follows the source, and is not written again if the source has not changed', async (context) => {
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

  test('keeps a port allocated to the Service that had it first', async (context) => {
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

  test('is brought up to date when an unreachable store returns', async (context) => {
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

  test('is published completely in a new epoch after the store was wiped, even if the connection stayed open', async (context) => {
    const { store, advance } = await startControllerHarness(context);
    const before = await store.table.meta();
    store.faults.wipe();
    await advance(3_000);
    assert.deepEqual(await servedServices(store), ['web']);
    const after = await store.table.meta();
    assert.ok((after?.epoch ?? 0) > (before?.epoch ?? 0));
  });

  test('is taken over unchanged by the next controller', async (context) => {
    const { store, clock, source, controller } = await startControllerHarness(context);
    await controller.close();
    const before = await store.table.meta();
    const services = [serviceObject('aaa'), ...source.snapshot().services];
    const next = await startControllerHarness(context, {
      store,
      clock,
      source: new FakeSource({ ...source.snapshot() }),
    });
    const after = await store.table.meta();
    assert.deepEqual({ ...after, leader: before?.leader }, before);
    next.source.set({ services });
    await next.advance(10);
    const table = (await store.table.read())?.table;
    assert.ok(table);
    assert.deepEqual(
      entriesOf(table, 'listener').map((each) => each.service),
      ['uid-web'],
      'the allocation stays',
    );
  });
});

test('seeds the ledger of a wiped store with the usage that the controller remembers', async (context) => {
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
  test('writes nothing until it leads', async (context) => {
    const leader = createFakeLeadership(false);
    const { store, advance } = await startControllerHarness(context, { leader });
    await advance(2_000);
    assert.deepEqual(await servedServices(store), ['nothing']);
    leader.set(true);
    await advance(10);
    assert.deepEqual(await servedServices(store), ['web']);
  });

  test('stops when another controller has claimed the store', async (context) => {
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

  test('claims the table again if it is still elected', async (context) => {
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

  test('is in force at once, and is lifted only once it is known to be deleted', async (context) => {
    const { store, source, advance } = await startControllerHarness(context);
    assert.notEqual((await store.suspensions.read()).completeSince, null);
    source.set({ suspensions: [suspensionObject('x')] });
    await advance(10);
    assert.deepEqual(await names(store), ['x']);
    source.set({ suspensions: [] });
    await advance(2_000);
    assert.deepEqual(await names(store), ['x'], 'absence from the snapshot is no proof of deletion');
    source.deleted.add('uid-x');
    source.set({});
    await advance(10);
    assert.deepEqual(await names(store), []);
  });

  test('is written to a new store before the table, so that its target is never served', async (context) => {
    const uidsAtTableChange: string[][] = [];
    const store: MemoryStore = new MemoryStore({
      onChange() {
        if (store.table.content.complete) uidsAtTableChange.push([...store.suspensions.content.suspensions.keys()]);
      },
    });
    const source = new FakeSource({ services: [serviceObject('web')], suspensions: [suspensionObject('stop')] });
    await startControllerHarness(context, { store, source });
    assert.deepEqual(uidsAtTableChange[0], ['uid-stop']);
  });

  test('is in force even if the translation fails', async (context) => {
    const { store, source, advance } = await startControllerHarness(context);
    const duplicates = [serviceObject('web'), serviceObject('web', { name: 'copy', ports: [] })];
    source.set({ services: duplicates, suspensions: [suspensionObject('stop')] });
    await advance(10);
    assert.deepEqual(await names(store), ['stop']);
    assert.deepEqual(await servedServices(store), ['web'], 'the last table stays');
  });

  test('is lifted by the next controller if it was deleted while no controller ran', async (context) => {
    const { store, clock, source, controller, advance } = await startControllerHarness(context);
    source.set({ suspensions: [suspensionObject('x')] });
    await advance(10);
    await controller.close();
    const next = new FakeSource({});
    next.deleted.add('uid-x');
    await startControllerHarness(context, { store, clock, source: next });
    assert.deepEqual(await names(store), []);
  });

  test('ends exactly at `until`, and is deleted then', async (context) => {
    const deleted: string[] = [];
    const clock = new ManualClock();
    const { store, source, advance } = await startControllerHarness(context, {
      clock,
      suspensions: {
        getOrCreate: () => assert.fail('no Suspension was requested'),
        remove: async ({ name }) => void deleted.push(name),
      },
    });
    source.set({ suspensions: [suspensionObject('x', { until: clock.now() + 60_000 })] });
    await advance(59_000);
    assert.deepEqual([await names(store), deleted], [['x'], []]);
    await advance(1_020);
    assert.deepEqual([await names(store), deleted], [[], ['x']]);
  });

  test('ends when `until` is moved into the past', async (context) => {
    const { clock, store, source, advance } = await startControllerHarness(context);
    source.set({ suspensions: [suspensionObject('x', { until: clock.now() + 60_000 })] });
    await advance(10);
    source.set({ suspensions: [suspensionObject('x', { until: clock.now() - 1 })] });
    await advance(10);
    assert.deepEqual(await names(store), []);
  });

  test('stays if it was made in the store itself, and is restored after a wipe', async (context) => {
    const { store, source, advance } = await startControllerHarness(context);
    const request: Suspension = {
      uid: 'request-1',
      name: 'by-console',
      target: { kind: 'service', namespace: 'shop', service: 'web' },
      message: '',
      until: null,
      reason: 'SuspendedByOperator',
      origin: { kind: 'store' },
      createdAt: null,
    };
    await store.suspensions.put(request);
    source.set({ suspensions: [suspensionObject('x')] });
    await advance(2_000);
    assert.deepEqual(await names(store), ['by-console', 'x']);
    store.faults.wipe();
    await advance(3_000);
    assert.deepEqual(await names(store), ['by-console', 'x']);
    assert.notEqual((await store.suspensions.read()).completeSince, null);
    await store.suspensions.remove(request.uid);
    await advance(2_000);
    store.faults.wipe();
    await advance(3_000);
    assert.deepEqual(await names(store), ['x'], 'a suspension that a person has lifted is not restored');
  });
});

test('closing cancels all timers', async (context) => {
  const { clock, controller, source, advance } = await startControllerHarness(context);
  source.set({ suspensions: [suspensionObject('x', { until: clock.now() + 60_000 })] });
  await advance(10);
  assert.ok(clock.pendingTimers > 0);
  await controller.close();
  assert.equal(clock.pendingTimers, 0);
});
