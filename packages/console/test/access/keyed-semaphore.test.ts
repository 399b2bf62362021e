import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { KeyedSemaphore } from '../../src/access/access-reviews.ts';

test('one key has so many at a time, another is not kept waiting, and none is forgotten', async () => {
  const turns = new KeyedSemaphore(2);
  const started: string[] = [];
  const open: PromiseWithResolvers<void>[] = [];
  const ask = (key: string, name: string): Promise<void> =>
    turns.run(key, () => {
      started.push(name);
      const work = Promise.withResolvers<void>();
      open.push(work);
      return work.promise;
    });
  const all = [ask('a', 'a1'), ask('a', 'a2'), ask('a', 'a3'), ask('a', 'a4'), ask('b', 'b1')];
  await nextTurn();
  assert.deepEqual(started, ['a1', 'a2', 'b1']);
  open[0]?.reject(new Error('away'));
  await assert.rejects(all[0] ?? Promise.resolve(), /away/);
  await nextTurn();
  assert.deepEqual(started, ['a1', 'a2', 'b1', 'a3']);
  for (let index = 1; index < 5; index += 1) {
    open[index]?.resolve();
    await nextTurn();
  }
  await Promise.all(all.slice(1));
  assert.deepEqual(started, ['a1', 'a2', 'b1', 'a3', 'a4']);
});
