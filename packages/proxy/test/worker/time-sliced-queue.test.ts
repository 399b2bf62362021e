import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { TimeSlicedQueue } from '../../src/worker/time-sliced-queue.ts';

const SLICE_MS = 10;
const STEP_MS = 4;

describe('TimeSlicedQueue', () => {
  test('finishes a short task before add returns', () => {
    const { add, steps } = createQueue();
    add('a', 2);
    assert.deepEqual(steps, ['a', 'a', 'a ended']);
  });

  test('continues a long task in the next turn, before the tasks added after it', async () => {
    const { add, steps } = createQueue();
    add('a', 4);
    add('b', 1);
    assert.deepEqual(steps, ['a', 'a', 'a'], 'three steps of 4 ms exceed the slice of 10 ms');
    await nextTurn();
    assert.deepEqual(steps, ['a', 'a', 'a', 'a', 'a ended', 'b', 'b ended']);
  });

  test('gives the tasks of one turn one slice together', async () => {
    const { add, steps } = createQueue();
    for (const name of ['a', 'b', 'c', 'd']) add(name, 1);
    assert.deepEqual(steps, ['a', 'a ended', 'b', 'b ended', 'c']);
    await nextTurn();
    assert.deepEqual(steps.slice(-3), ['c ended', 'd', 'd ended']);
  });

  test('begins a task only when the task before it has ended', async () => {
    const { add, steps } = createQueue();
    add('a', 9);
    add('b', 9);
    while (!steps.includes('b ended')) await nextTurn();
    assert.ok(steps.indexOf('b') > steps.indexOf('a ended'));
  });
});

/** Creates a queue whose clock advances by `STEP_MS` in each step of a task. */
function createQueue(): { add(name: string, count: number): void; steps: string[] } {
  const steps: string[] = [];
  let now = 0;
  const queue = new TimeSlicedQueue({ sliceMs: SLICE_MS, now: () => now });
  function* task(name: string, count: number): Iterable<void> {
    for (let step = 0; step < count; step += 1) {
      now += STEP_MS;
      steps.push(name);
      yield;
    }
    steps.push(`${name} ended`);
  }
  return { add: (name, count) => queue.add(task(name, count)), steps };
}
