// A call that returns after the loss of leadership must have no effect, because another controller leads by then.
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { ServiceView } from '@weir/model';
import type { DesiredViews } from '../../src/status/status-sink.ts';
import { heartbeat, servedServices, startControllerHarness } from '../fixtures/controller-harness.ts';
import { createFakeLeadership } from '../fixtures/fake-leadership.ts';
import { FakeSource, nodeObject, serviceObject, suspensionObject } from '../fixtures/fake-source.ts';

/** Delays all calls of a function until `open` is called; `called` resolves with the first call. */
function delayed<A extends unknown[], R>(call: (...args: A) => Promise<R>) {
  const gate = Promise.withResolvers<void>();
  const called = Promise.withResolvers<void>();
  return {
    called: called.promise,
    open: gate.resolve,
    async call(...args: A): Promise<R> {
      called.resolve();
      await gate.promise;
      return call(...args);
    },
  };
}

async function startLeading(context: TestContext) {
  const leader = createFakeLeadership();
  const writes: (readonly string[])[] = [];
  const signals: AbortSignal[] = [];
  let views: readonly ServiceView[] = [];
  const status = {
    observedRevision: 0,
    setDesired(desired: DesiredViews): void {
      views = desired.views;
    },
    async write(signal: AbortSignal): Promise<'complete'> {
      writes.push(views.map(({ addresses }) => addresses.join() || '-'));
      signals.push(signal);
      return 'complete';
    },
  };
  const source = new FakeSource({ nodes: [nodeObject('a', '10.0.0.1')], services: [serviceObject('web')] });
  const harness = await startControllerHarness(context, { leader, status, source });
  await harness.advance(300);
  assert.deepEqual(writes, [['-']]);
  return { ...harness, leader, writes, signals };
}

describe('a controller that loses leadership', () => {
  for (const [what, isWonAgain] of [
    ['', false],
    [', even if it has been elected again by then', true],
  ] as const) {
    test(`while it reads heartbeats does not update status${what}`, async (context) => {
      const { store, leader, writes, advance } = await startLeading(context);
      const { list } = store.heartbeats;
      const slow = delayed(list.bind(store.heartbeats));
      await store.heartbeats.record(heartbeat('a', ['uid-web']));
      store.heartbeats.list = slow.call;
      await advance(1_000);
      await slow.called;
      leader.set(false);
      if (isWonAgain) leader.set(true);
      const before = writes.length;
      slow.open();
      await new Promise(setImmediate);
      assert.equal(writes.length, before);
      await store.heartbeats.record(heartbeat('a', ['uid-web']));
      await advance(2_000);
      assert.deepEqual(writes.slice(before), isWonAgain ? [['10.0.0.1']] : []);
    });
  }

  test('while it writes status aborts the write', async (context) => {
    const { leader, signals } = await startLeading(context);
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [false],
    );
    leader.set(false);
    assert.deepEqual(
      signals.map(({ aborted }) => aborted),
      [true],
    );
  });

  test('while it reads the store writes no suspension and no table, and does not claim the table', async (context) => {
    const { store, source, leader, advance } = await startLeading(context);
    const slow = delayed(store.suspensions.read.bind(store.suspensions));
    const [meta, suspensions] = [await store.table.meta(), await store.suspensions.read()];
    store.suspensions.read = slow.call;
    source.set({ services: [], suspensions: [suspensionObject('stop')] });
    await advance(10);
    await slow.called;
    leader.set(false);
    slow.open();
    await advance(5_000);
    assert.deepEqual([await store.table.meta(), await store.suspensions.read()], [meta, suspensions]);
    leader.set(true);
    await advance(100);
    assert.deepEqual([await servedServices(store), (await store.suspensions.read()).suspensions.length], [[], 1]);
  });

  test('while it writes the table, and is elected again, does not overwrite the table of the other leader', async (context) => {
    const { store, source, leader, advance } = await startLeading(context);
    const slow = delayed(store.table.publish.bind(store.table));
    store.table.publish = slow.call;
    source.set({ services: [serviceObject('old')] });
    await advance(10);
    await slow.called;
    leader.set(false);
    await store.table.claimLeader();
    source.refresh = async () => source.set({ services: [serviceObject('new')] });
    leader.set(true);
    const before = store.table.content.revisions.length;
    slow.open();
    await advance(5_000);
    assert.deepEqual(await servedServices(store), ['new']);
    assert.equal(store.table.content.revisions.length, before + 1);
  });

  test('to another controller that claims the store reads all objects again before it translates', async (context) => {
    const { store, source, advance } = await startLeading(context);
    const leaders: number[] = [];
    const fenced = await store.table.claimLeader();
    source.refresh = async () => {
      leaders.push(store.table.content.leader);
      source.set({ services: [serviceObject('new')] });
    };
    const before = store.table.content.revisions.length;
    source.set({ services: [serviceObject('old')] });
    await advance(1_000);
    assert.deepEqual(await servedServices(store), ['new']);
    assert.equal(
      store.table.content.revisions.length,
      before + 1,
      'no table was written from the objects that had been read before',
    );
    assert.deepEqual(
      leaders,
      [fenced + 1],
      'objects read before the claim may be older than those of the other leader',
    );
  });

  test('because the store was wiped publishes again without reading the API server, since no other controller has led', async (context) => {
    const { store, source, advance } = await startLeading(context);
    source.refresh = () => Promise.reject(new Error('the API server is unreachable'));
    store.faults.wipe();
    await advance(3_000);
    assert.deepEqual(await servedServices(store), ['web']);
  });

  test('and regains it at once starts from the published status, because another controller may have led in between', async (context) => {
    const { store, source, leader, writes, advance } = await startLeading(context);
    for (let second = 0; second < 15; second += 1) {
      await store.heartbeats.record(heartbeat('a', ['uid-web']));
      await advance(1_000);
    }
    await advance(5_000);
    assert.deepEqual(writes.at(-1), ['10.0.0.1'], 'the last address stays');
    source.set({ services: [serviceObject('web', { publishedIPs: [] })] });
    leader.set(false);
    leader.set(true);
    await advance(4_000);
    assert.deepEqual(writes.at(-1), ['-'], 'the addresses that it published itself are forgotten');
  });
});
