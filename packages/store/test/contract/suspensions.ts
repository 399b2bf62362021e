import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { Store, SuspensionState } from '../../src/contract.ts';
import { StoreError } from '../../src/errors.ts';
import { cutoff } from './sample-data.ts';
import type { StoreUnderTest } from './store-fixture.ts';

export function suspensionsContract(subject: StoreUnderTest): void {
  describe(`the cut-offs of ${subject.name}`, () => {
    test('a new store lists nothing, and that means nothing', async () => {
      await using world = await subject.open();
      const { suspensions } = await world.connect();
      const state = await suspensions.read();
      assert.deepEqual(state, { sequence: 0, complete: false, cutoffs: [], removed: [] });
    });

    test('are listed by uid; one replaces the one with its uid; each change counts up', async () => {
      await using world = await subject.open();
      const { suspensions } = await world.connect();
      const sequences: number[] = [];
      const sequence = async (): Promise<void> => void sequences.push((await suspensions.read()).sequence);
      await suspensions.put(cutoff('b'));
      await sequence();
      await suspensions.put(cutoff('a', { until: 5, target: { kind: 'service', namespace: 'x', service: 'y' } }));
      await sequence();
      await suspensions.put(cutoff('a', { message: 'enough' }));
      await sequence();
      assert.deepEqual((await suspensions.read()).suspensions, [cutoff('a', { message: 'enough' }), cutoff('b')]);
      await suspensions.remove('b');
      await sequence();
      assert.deepEqual((await suspensions.read()).suspensions, [cutoff('a', { message: 'enough' })]);
      assert.deepEqual(
        sequences,
        [...new Set(sequences)].sort((a, b) => a - b),
      );
    });

    test('putting the same, removing what is not there and completing twice change nothing', async () => {
      await using world = await subject.open();
      const { suspensions } = await world.connect();
      await suspensions.put(cutoff('a'));
      await suspensions.markComplete();
      const before = await suspensions.read();
      await suspensions.put(cutoff('a'));
      await suspensions.remove('b');
      await suspensions.markComplete();
      assert.deepEqual(await suspensions.read(), before);
      assert.equal(before.complete, true);
    });

    test('what is removed before they are complete is told, until it is put again or they are', async () => {
      await using world = await subject.open();
      const { suspensions } = await world.connect();
      await suspensions.remove('b');
      await suspensions.remove('a');
      assert.deepEqual((await suspensions.read()).removed, ['a', 'b']);
      await suspensions.put(cutoff('b'));
      assert.deepEqual((await suspensions.read()).removed, ['a']);
      await suspensions.markComplete();
      assert.deepEqual((await suspensions.read()).removed, []);
      await suspensions.remove('b');
      assert.deepEqual((await suspensions.read()).removed, []);
    });

    test('are watched from the present state on, by everybody', async (t) => {
      await using world = await subject.open();
      const [writing, reading] = [await world.connect(), await world.connect()];
      await writing.suspensions.put(cutoff('a'));
      const watchers = [watch(t, writing), watch(t, reading)];
      for (const watcher of watchers) assert.deepEqual((await watcher.next())?.suspensions, [cutoff('a')]);
      for (const change of [
        () => writing.suspensions.put(cutoff('b')),
        () => writing.suspensions.remove('a'),
        () => writing.suspensions.markComplete(),
      ]) {
        const news = watchers.map((watcher) => watcher.next());
        await change();
        const now = await writing.suspensions.read();
        for (const state of await Promise.all(news)) assert.deepEqual(state, now);
      }
    });

    test('a watch ends when the signal aborts, while waiting and before the start', async (t) => {
      await using world = await subject.open();
      const store = await world.connect();
      const watcher = watch(t, store);
      await watcher.next();
      const next = watcher.next();
      watcher.stop();
      assert.equal(await next, undefined);
      for await (const _ of store.suspensions.watch(AbortSignal.abort())) assert.fail('nothing was to come');
    });

    test('a wipe is told: not complete, and the sequence goes on as far as the writer knows it', async (t) => {
      await using world = await subject.open();
      const store = await world.connect();
      await store.suspensions.put(cutoff('a'));
      await store.suspensions.markComplete();
      const { sequence } = await store.suspensions.read();
      await world.wipe();
      const watcher = watch(t, store);
      assert.deepEqual(await watcher.next(), { sequence: 0, complete: false, cutoffs: [], removed: [] });
      await store.suspensions.put(cutoff('b'));
      const state = await watcher.next();
      assert.ok((state?.sequence ?? 0) > sequence);
      assert.equal(state?.complete, false);
    });

    test('a roll back is told, even to the same number', async (t) => {
      await using world = await subject.open();
      const [writing, reading] = [await world.connect(), await world.connect()];
      await writing.suspensions.markComplete();
      const rollBack = await world.checkpoint();
      await writing.suspensions.put(cutoff('lost'));
      assert.deepEqual((await watch(t, reading).next())?.suspensions, [cutoff('lost')]);
      await rollBack();
      await writing.suspensions.put(cutoff('other'));
      assert.deepEqual((await watch(t, reading).next())?.suspensions, [cutoff('other')]);
    });

    test('a watch fails as away while the store is, and begins anew with the present state', async (t) => {
      await using world = await subject.open();
      const store = await world.connect();
      await store.suspensions.put(cutoff('a'));
      const watcher = watch(t, store);
      await watcher.next();
      const failing = assert.rejects(
        watcher.next(),
        (error: unknown) => error instanceof StoreError && error.code === 'AWAY',
      );
      await world.goAway();
      await failing;
      await world.comeBack();
      assert.deepEqual((await watch(t, store).next())?.suspensions, [cutoff('a')]);
    });
  });
}

interface Watcher {
  /** Undefined: it has ended. */
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
