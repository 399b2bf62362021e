import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { TimeSlicedQueue } from '../../../src/supervisor/table/table-distributor.ts';

const STEP_MS = 4;

describe('things that are done in turns', () => {
  test('are done at once when they are short', () => {
    const { taker, done } = takerOfTest();
    taker.add('a', 2);
    assert.deepEqual(done, ['a', 'a', 'a ended']);
  });

  test('leave the thread to others when they are long, and keep their order', async () => {
    const { taker, done } = takerOfTest();
    taker.add('a', 4);
    taker.add('b', 1);
    assert.deepEqual(done, ['a', 'a', 'a'], 'three of four milliseconds each are more than a turn');
    await turn();
    assert.deepEqual(done, ['a', 'a', 'a', 'a', 'a ended', 'b', 'b ended']);
    taker.add('c', 1);
    assert.deepEqual(done.slice(-2), ['c', 'c ended']);
  });

  test('begin when what was added before has ended', async () => {
    const { taker, done } = takerOfTest();
    taker.add('a', 9);
    taker.add('b', 9);
    while (!done.includes('b ended')) await turn();
    assert.ok(done.indexOf('b') > done.indexOf('a ended'));
  });
});

/** Each step takes as long as the clock says. */
function takerOfTest(): { taker: { add(name: string, steps: number): void }; done: string[] } {
  const done: string[] = [];
  let now = 0;
  const taker = new TimeSlicedQueue(() => now);
  function* steps(name: string, count: number): Iterable<void> {
    for (let step = 0; step < count; step += 1) {
      now += STEP_MS;
      done.push(name);
      yield;
    }
    done.push(`${name} ended`);
  }
  return { taker: { add: (name, count) => taker.add(() => steps(name, count)) }, done };
}
