import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { CutoffState, Store } from '../../src/contract.ts';
import { StoreError } from '../../src/error.ts';
import { cutoff } from './sample.ts';
import type { Subject } from './subject.ts';

export function cutoffsContract(subject: Subject): void {
  describe(`the cut-offs of ${subject.name}`, () => {
    test('a new store lists nothing, and that means nothing', async () => {
      await using world = await subject.open();
      const { cutoffs } = await world.connect();
      const state = await cutoffs.read();
      assert.deepEqual(state, { sequence: 0, complete: false, cutoffs: [], removed: [] });
    });

    test('are listed by uid; one replaces the one with its uid; each change counts up', async () => {
      await using world = await subject.open();
      const { cutoffs } = await world.connect();
      const sequences: number[] = [];
      const sequence = async (): Promise<void> => void sequences.push((await cutoffs.read()).sequence);
      await cutoffs.put(cutoff('b'));
      await sequence();
      await cutoffs.put(cutoff('a', { until: 5, target: { kind: 'service', namespace: 'x', service: 'y' } }));
      await sequence();
      await cutoffs.put(cutoff('a', { message: 'enough' }));
      await sequence();
      assert.deepEqual((await cutoffs.read()).cutoffs, [cutoff('a', { message: 'enough' }), cutoff('b')]);
      await cutoffs.remove('b');
      await sequence();
      assert.deepEqual((await cutoffs.read()).cutoffs, [cutoff('a', { message: 'enough' })]);
      assert.deepEqual(
        sequences,
        [...new Set(sequences)].sort((a, b) => a - b),
      );
    });

    test('putting the same, removing what is not there and completing twice change nothing', async () => {
      await using world = await subject.open();
      const { cutoffs } = await world.connect();
      await cutoffs.put(cutoff('a'));
      await cutoffs.complete();
      const before = await cutoffs.read();
      await cutoffs.put(cutoff('a'));
      await cutoffs.remove('b');
      await cutoffs.complete();
      assert.deepEqual(await cutoffs.read(), before);
      assert.equal(before.complete, true);
    });

    test('what is removed before they are complete is told, until it is put again or they are', async () => {
      await using world = await subject.open();
      const { cutoffs } = await world.connect();
      await cutoffs.remove('b');
      await cutoffs.remove('a');
      assert.deepEqual((await cutoffs.read()).removed, ['a', 'b']);
      await cutoffs.put(cutoff('b'));
      assert.deepEqual((await cutoffs.read()).removed, ['a']);
      await cutoffs.complete();
      assert.deepEqual((await cutoffs.read()).removed, []);
      await cutoffs.remove('b');
      assert.deepEqual((await cutoffs.read()).removed, []);
    });

    test('are watched from the present state on, by everybody', async (t) => {
      await using world = await subject.open();
      const [writing, reading] = [await world.connect(), await world.connect()];
      await writing.cutoffs.put(cutoff('a'));
      const watchers = [watch(t, writing), watch(t, reading)];
      for (const watcher of watchers) assert.deepEqual((await watcher.next())?.cutoffs, [cutoff('a')]);
      for (const change of [
        () => writing.cutoffs.put(cutoff('b')),
        () => writing.cutoffs.remove('a'),
        () => writing.cutoffs.complete(),
      ]) {
        const news = watchers.map((watcher) => watcher.next());
        await change();
        const now = await writing.cutoffs.read();
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
      for await (const _ of store.cutoffs.watch(AbortSignal.abort())) assert.fail('nothing was to come');
    });

    test('a wipe is told: not complete, and the sequence goes on as far as the writer knows it', async (t) => {
      await using world = await subject.open();
      const store = await world.connect();
      await store.cutoffs.put(cutoff('a'));
      await store.cutoffs.complete();
      const { sequence } = await store.cutoffs.read();
      await world.wipe();
      const watcher = watch(t, store);
      assert.deepEqual(await watcher.next(), { sequence: 0, complete: false, cutoffs: [], removed: [] });
      await store.cutoffs.put(cutoff('b'));
      const state = await watcher.next();
      assert.ok((state?.sequence ?? 0) > sequence);
      assert.equal(state?.complete, false);
    });

    test('a roll back is told, even to the same number', async (t) => {
      await using world = await subject.open();
      const [writing, reading] = [await world.connect(), await world.connect()];
      await writing.cutoffs.complete();
      const rollBack = await world.checkpoint();
      await writing.cutoffs.put(cutoff('lost'));
      assert.deepEqual((await watch(t, reading).next())?.cutoffs, [cutoff('lost')]);
      await rollBack();
      await writing.cutoffs.put(cutoff('other'));
      assert.deepEqual((await watch(t, reading).next())?.cutoffs, [cutoff('other')]);
    });

    test('a watch fails as away while the store is, and begins anew with the present state', async (t) => {
      await using world = await subject.open();
      const store = await world.connect();
      await store.cutoffs.put(cutoff('a'));
      const watcher = watch(t, store);
      await watcher.next();
      const failing = assert.rejects(
        watcher.next(),
        (error: unknown) => error instanceof StoreError && error.code === 'AWAY',
      );
      await world.goAway();
      await failing;
      await world.comeBack();
      assert.deepEqual((await watch(t, store).next())?.cutoffs, [cutoff('a')]);
    });
  });
}

interface Watcher {
  /** Undefined: it has ended. */
  next(): Promise<CutoffState | undefined>;
  stop(): void;
}

function watch(t: TestContext, store: Store): Watcher {
  const stopped = new AbortController();
  t.after(() => stopped.abort());
  const states = store.cutoffs.watch(stopped.signal)[Symbol.asyncIterator]();
  return {
    next: async () => {
      const { done, value } = await states.next();
      return done === true ? undefined : value;
    },
    stop: () => stopped.abort(),
  };
}
