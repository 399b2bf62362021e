import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NodeSilence } from '@weir/model';

describe('the silence of nodes', () => {
  const heard = (...nodes: string[]) => nodes.map((node) => ({ node }));

  test('is reported after 10 s with the time at which it began, until the node is heard or has no proxy any more', () => {
    const silence = new NodeSilence();
    const at = (now: number, ...nodes: string[]) =>
      Object.fromEntries(silence.update({ nodes: ['a', 'b'], heartbeats: heard(...nodes), now }));
    assert.deepEqual(at(0, 'a', 'b'), {});
    assert.deepEqual(at(5_000, 'a'), {});
    assert.deepEqual(at(14_999, 'a'), {});
    assert.deepEqual(at(15_000, 'a'), { b: 5_000 });
    assert.deepEqual(at(60_000), { b: 5_000 });
    assert.deepEqual(at(70_000, 'b'), { a: 60_000 });
    assert.deepEqual(Object.fromEntries(silence.update({ nodes: ['b'], heartbeats: heard('b'), now: 71_000 })), {});
  });

  test('that is known from before is reported at once with its time', () => {
    const silence = new NodeSilence(
      new Map([
        ['a', 1_000],
        ['gone', 1_000],
      ]),
    );
    const input = { nodes: ['a', 'b'], heartbeats: [], now: 100_000 };
    assert.deepEqual([...silence.update(input)], [['a', 1_000]]);
    assert.equal(silence.update(input), silence.silentSince, 'the map stays the same object');
  });
});
