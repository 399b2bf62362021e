import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Store, SuspensionState } from '../../src/contract.ts';
import { StoreError } from '../../src/errors.ts';
import { suspension } from './sample-data.ts';
import type { StoreUnderTest } from './store-fixture.ts';

const NEW_STATE: SuspensionState = { sequence: 0, completeSince: null, suspensions: [], changes: new Map() };

export function suspensionsContract(subject: StoreUnderTest): void {
  describe(`the suspensions of ${subject.name}`, () => {
    test('are empty and incomplete in a new store', async () => {
      await using world = await subject.open();
      const { suspensions } = await world.connect();
      const state = await suspensions.read();
      assert.deepEqual(state, NEW_STATE);
    });

    test('are sorted by uid, replaced by uid, and each change increases the sequence', async () => {
      await using world = await subject.open();
      const { suspensions } = await world.connect();
      const sequences: number[] = [];
      const sequence = async (): Promise<void> => void sequences.push((await suspensions.read()).sequence);
      await suspensions.put(suspension('b'));
      await sequence();
      await suspensions.put(suspension('a', { until: 5, target: { kind: 'service', namespace: 'x', service: 'y' } }));
      await sequence();
      await suspensions.put(suspension('a', { message: 'enough' }));
      await sequence();
      assert.deepEqual((await suspensions.read()).suspensions, [
        suspension('a', { message: 'enough' }),
        suspension('b'),
      ]);
      await suspensions.remove('b');
      await sequence();
      assert.deepEqual((await suspensions.read()).suspensions, [suspension('a', { message: 'enough' })]);
      assert.deepEqual(
        sequences,
        [...new Set(sequences)].sort((a, b) => a - b),
      );
    });

    test('do not change by an identical put or an unknown remove', async () => {
      await using world = await subject.open();
      const { suspensions } = await world.connect();
      await suspensions.put(suspension('a'));
      await suspensions.markComplete();
      const before = await suspensions.read();
      await suspensions.put(suspension('a'));
      await suspensions.remove('b');
      assert.deepEqual(await suspensions.read(), before);
      assert.equal(before.completeSince, before.sequence);
    });

    test('have the sequence of the last change by uid, also of a removal until the next markComplete', async () => {
      await using world = await subject.open();
      const { suspensions } = await world.connect();
      const changed: number[] = [];
      const record = async (): Promise<void> => void changed.push((await suspensions.read()).sequence);
      await suspensions.remove('unknown');
      await record();
      await suspensions.put(suspension('a'));
      await record();
      await suspensions.put(suspension('b'));
      await record();
      await suspensions.remove('a');
      await record();
      const [unknown, , b, a] = changed;
      assert.deepEqual(
        [...(await suspensions.read()).changes].sort(),
        [
          ['a', a],
          ['b', b],
          ['unknown', unknown],
        ],
        'an incomplete list records the removal of an unknown suspension, too',
      );
      await suspensions.markComplete();
      assert.deepEqual((await suspensions.read()).changes, new Map([['b', b]]));
      const declared = (await suspensions.read()).completeSince ?? 0;
      assert.ok(declared > (a ?? 0));
      await suspensions.markComplete();
      assert.ok(((await suspensions.read()).completeSince ?? 0) > declared);
      await suspensions.markComplete(declared + 1e9);
      assert.equal((await suspensions.read()).completeSince, declared + 1e9 + 1);
    });

    test('are watched from the current state on, by several watchers', async (t) => {
      await using world = await subject.open();
      const [writing, reading] = [await world.connect(), await world.connect()];
      await writing.suspensions.put(suspension('a'));
      const watchers = [watch(t, writing), watch(t, reading)];
      for (const watcher of watchers) assert.deepEqual((await watcher.next())?.suspensions, [suspension('a')]);
      for (const change of [
        () => writing.suspensions.put(suspension('b')),
        () => writing.suspensions.remove('a'),
        () => writing.suspensions.markComplete(),
      ]) {
        const nextStates = watchers.map((watcher) => watcher.next());
        await change();
        const current = await writing.suspensions.read();
        for (const state of await Promise.all(nextStates)) assert.deepEqual(state, current);
      }
    });

    test('end a watch when the signal aborts, during the wait and before the start', async (t) => {
      await using world = await subject.open();
      const store = await world.connect();
      const watcher = watch(t, store);
      await watcher.next();
      const next = watcher.next();
      watcher.stop();
      assert.equal(await next, undefined);
      for await (const _ of store.suspensions.watch(AbortSignal.abort())) assert.fail('no state expected');
    });

    test('are incomplete after a wipe, and the sequence of the writer continues', async (t) => {
      await using world = await subject.open();
      const store = await world.connect();
      await store.suspensions.put(suspension('a'));
      await store.suspensions.markComplete();
      const { sequence } = await store.suspensions.read();
      await world.wipe();
      const watcher = watch(t, store);
      assert.deepEqual(await watcher.next(), NEW_STATE);
      await store.suspensions.put(suspension('b'));
      const state = await watcher.next();
      assert.ok((state?.sequence ?? 0) > sequence);
      assert.equal(state?.completeSince, null);
    });

    test('get a sequence after a rollback that no change had before, even from a new writer', async () => {
      await using world = await subject.open();
      const first = await world.connect();
      await first.suspensions.put(suspension('a'));
      const rollBack = await world.checkpoint();
      await first.suspensions.put(suspension('lost'));
      const { sequence } = await first.suspensions.read();
      await rollBack();
      assert.ok((await first.suspensions.read()).sequence < sequence);
      const second = await world.connect();
      await second.suspensions.put(suspension('other'));
      assert.ok((await second.suspensions.read()).sequence > sequence);
    });

    test('reach a watcher after a rollback', async (t) => {
      await using world = await subject.open();
      const [writing, reading] = [await world.connect(), await world.connect()];
      await writing.suspensions.markComplete();
      const rollBack = await world.checkpoint();
      await writing.suspensions.put(suspension('lost'));
      assert.deepEqual((await watch(t, reading).next())?.suspensions, [suspension('lost')]);
      await rollBack();
      await writing.suspensions.put(suspension('other'));
      assert.deepEqual((await watch(t, reading).next())?.suspensions, [suspension('other')]);
    });

    test('end a watch with AWAY during an outage; a new watch yields the current state', async (t) => {
      await using world = await subject.open();
      const store = await world.connect();
      await store.suspensions.put(suspension('a'));
      const watcher = watch(t, store);
      await watcher.next();
      const failing = assert.rejects(
        watcher.next(),
        (error: unknown) => error instanceof StoreError && error.code === 'AWAY',
      );
      await world.goAway();
      await failing;
      await world.comeBack();
      assert.deepEqual((await watch(t, store).next())?.suspensions, [suspension('a')]);
    });
  });
}

interface Watcher {
  /** Resolves with the next state, or with undefined after the watch has ended. */
  next(): Promise<SuspensionState | undefined>;
  stop(): void;
}

function watch(t: TestContext, store: Store): Watcher {
  const stopped = new AbortController();
  t.after(() => stopped.abort());
  const states = store.suspensions.watch(stopped.signal)[Symbol.asyncIterator]();
  return {
    next: async () => {
      const { done, value } = await states.next();
      return done === true ? undefined : value;
    },
    stop: () => stopped.abort(),
  };
}
