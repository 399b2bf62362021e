import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { UnreachableNodes } from '../../src/fleet/proxy-liveness.ts';

const nodes = ['a', 'b', 'c'];

describe('nodes without a proxy in the first round', () => {
  test('are silent at once if they once had a proxy, and lost no sooner than other nodes', () => {
    const unreachable = new UnreachableNodes();
    const hear = (heard: readonly string[], now: number): void =>
      unreachable.update({ nodes, heardNodes: new Set(heard), now, known: new Set(['a', 'b']) });
    hear(['a'], 0);
    assert.deepEqual([...unreachable.states], [['b', 'silent']]);
    hear(['a'], 299_999);
    assert.deepEqual([...unreachable.states].sort(), [
      ['b', 'silent'],
      ['c', 'silent'],
    ]);
    hear(['a', 'b', 'c'], 300_000);
    assert.deepEqual([...unreachable.states], []);
    hear(['a', 'c'], 300_001);
    assert.deepEqual([...unreachable.states], [], 'the proxy of b may be about to restart');
  });

  test('are not silent at once if they never had a proxy, since it may be about to start', () => {
    const unreachable = new UnreachableNodes();
    unreachable.update({ nodes, heardNodes: new Set(['a']), now: 0, known: new Set(['a']) });
    unreachable.update({ nodes, heardNodes: new Set(['a']), now: 29_999 });
    assert.deepEqual([...unreachable.states], []);
    unreachable.update({ nodes, heardNodes: new Set(['a']), now: 30_000 });
    assert.deepEqual([...unreachable.states.keys()], ['b', 'c']);
  });
});
