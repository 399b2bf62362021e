// Whatever waits for an answer when the lead goes must not act on it: another leads by then.
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { ServiceView } from '@weir/model';
import type { DesiredViews } from '../../src/status/status-sink.ts';
import { heartbeat, servedServices, startControllerHarness } from '../fixtures/controller-harness.ts';
import { createFakeLeadership } from '../fixtures/fake-leadership.ts';
import { FakeSource, nodeObject, serviceObject, suspensionObject } from '../fixtures/fake-source.ts';

/** A function that answers when `open` is called; `asked` resolves with the first call. */
function held<A extends unknown[], R>(call: (...args: A) => Promise<R>) {
  const gate = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  return {
    asked: asked.promise,
    open: gate.resolve,
    async call(...args: A): Promise<R> {
      asked.resolve();
      await gate.promise;
      return call(...args);
    },
  };
}

async function startLeading(context: TestContext) {
  const leader = createFakeLeadership();
  const told: (readonly string[])[] = [];
  const signals: AbortSignal[] = [];
  let views: readonly ServiceView[] = [];
  const status = {
    observedRevision: 0,
    setDesired(wanted: DesiredViews): void {
      views = wanted.views;
    },
    async write(signal: AbortSignal): Promise<'complete'> {
      told.push(views.map(({ addresses }) => addresses.join() || '-'));
      signals.push(signal);
      return 'complete';
    },
  };
  const source = new FakeSource({ nodes: [nodeObject('a', '10.0.0.1')], services: [serviceObject('web')] });
  const world = await startControllerHarness(context, { leader, status, source });
  await world.advance(300);
  assert.deepEqual(told, [['-']]);
  return { ...world, leader, told, signals };
}

describe('a controller that loses the lead', () => {
  for (const [what, isWonAgain] of [
    ['', false],
    [', also when it has won it again by then', true],
  ] as const) {
    test(`while it asks for the proxies tells nobody what it would have told${what}`, async (context) => {
      const { store, leader, told, advance } = await startLeading(context);
      const { list } = store.heartbeats;
      const slow = held(list.bind(store.heartbeats));
      await store.heartbeats.record(heartbeat('a', ['uid-web']));
      store.heartbeats.list = slow.call;
      await advance(1_000);
      await slow.asked;
      leader.set(false);
      if (isWonAgain) leader.set(true);
      const before = told.length;
      slow.open();
      await new Promise(setImmediate);
      assert.equal(told.length, before);
      await store.heartbeats.record(heartbeat('a', ['uid-web']));
      await advance(2_000);
      assert.deepEqual(told.slice(before), isWonAgain ? [['10.0.0.1']] : []);
    });
  }

  test('while it tells the Services stops telling them', async (context) => {
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

  test('while it reads the store puts no cut-off in force, writes no table, and does not claim it', async (context) => {
    const { store, source, leader, advance } = await startLeading(context);
    const slow = held(store.suspensions.read.bind(store.suspensions));
    const [meta, cutoffs] = [await store.table.meta(), await store.suspensions.read()];
    store.suspensions.read = slow.call;
    source.set({ services: [], suspensions: [suspensionObject('stop')] });
    await advance(10);
    await slow.asked;
    leader.set(false);
    slow.open();
    await advance(5_000);
    assert.deepEqual([await store.table.meta(), await store.suspensions.read()], [meta, cutoffs]);
    leader.set(true);
    await advance(100);
    assert.deepEqual([await servedServices(store), (await store.suspensions.read()).suspensions.length], [[], 1]);
  });

  test('while it writes the table, and wins it again by then, does not write it over what another decided', async (context) => {
    const { store, source, leader, advance } = await startLeading(context);
    const slow = held(store.table.publish.bind(store.table));
    store.table.publish = slow.call;
    source.set({ services: [serviceObject('old')] });
    await advance(10);
    await slow.asked;
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

  test('to another that claims the store, while the Lease is its own, reads everything before it decides again', async (context) => {
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
    assert.equal(store.table.content.revisions.length, before + 1, 'nothing was written of what had been read before');
    assert.deepEqual(
      leaders,
      [fenced + 1],
      'what is read before the claim may be older than what the other one decides',
    );
  });

  test('because the store was wiped writes it again from what it knows: nobody else has led, and the API server may be away', async (context) => {
    const { store, source, advance } = await startLeading(context);
    source.refresh = () => Promise.reject(new Error('the API server is away'));
    store.faults.wipe();
    await advance(3_000);
    assert.deepEqual(await servedServices(store), ['web']);
  });

  test('and wins it again at once starts from what the Services say: another may have led in between', async (context) => {
    const { store, source, leader, told, advance } = await startLeading(context);
    for (let second = 0; second < 15; second += 1) {
      await store.heartbeats.record(heartbeat('a', ['uid-web']));
      await advance(1_000);
    }
    await advance(5_000);
    assert.deepEqual(told.at(-1), ['10.0.0.1'], 'the last address stays');
    source.set({ services: [serviceObject('web', { publishedIPs: [] })] });
    leader.set(false);
    leader.set(true);
    await advance(4_000);
    assert.deepEqual(told.at(-1), ['-'], 'what it told itself is not remembered');
  });
});
