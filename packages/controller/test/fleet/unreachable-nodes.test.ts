import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { UnreachableNodes } from '../../src/fleet/proxy-liveness.ts';

const nodes = ['a', 'b', 'c'];

describe('nodes without a proxy when the listening begins', () => {
  test('are silent at once where they had one, until they are heard, and lost no sooner than others', () => {
    const absences = new UnreachableNodes();
    const hear = (heard: readonly string[], now: number): void =>
      absences.update({ nodes, heardNodes: new Set(heard), now, known: new Set(['a', 'b']) });
    hear(['a'], 0);
    assert.deepEqual([...absences.states], [['b', 'silent']]);
    hear(['a'], 299_999);
    assert.deepEqual([...absences.states].sort(), [
      ['b', 'silent'],
      ['c', 'silent'],
    ]);
    hear(['a', 'b', 'c'], 300_000);
    assert.deepEqual([...absences.states], []);
    hear(['a', 'c'], 300_001);
    assert.deepEqual([...absences.states], [], 'b may be about to begin its next life');
  });

  test('are waited for where nobody knows of any: they may be about to start', () => {
    const absences = new UnreachableNodes();
    absences.update({ nodes, heardNodes: new Set(['a']), now: 0, known: new Set(['a']) });
    absences.update({ nodes, heardNodes: new Set(['a']), now: 29_999 });
    assert.deepEqual([...absences.states], []);
    absences.update({ nodes, heardNodes: new Set(['a']), now: 30_000 });
    assert.deepEqual([...absences.states.keys()], ['b', 'c']);
  });
});
