import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { KeyedSemaphore } from '../../src/access/access-reviews.ts';

test('limits the running tasks of each key and runs waiting tasks in order', async () => {
  const semaphore = new KeyedSemaphore(2);
  const started: string[] = [];
  const open: PromiseWithResolvers<void>[] = [];
  const start = (key: string, name: string): Promise<void> =>
    semaphore.run(key, () => {
      started.push(name);
      const work = Promise.withResolvers<void>();
      open.push(work);
      return work.promise;
    });
  const all = [start('a', 'a1'), start('a', 'a2'), start('a', 'a3'), start('a', 'a4'), start('b', 'b1')];
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
