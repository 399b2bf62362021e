import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Absences } from '../../src/control/absences.ts';

const nodes = ['a', 'b', 'c'];

describe('nodes without a proxy when the listening begins', () => {
  test('are silent at once where they had one, until they are heard, and lost no sooner than others', () => {
    const absences = new Absences();
    const hear = (heard: readonly string[], now: number): void =>
      absences.listened({ nodes, heard: new Set(heard), now, known: new Set(['a', 'b']) });
    hear(['a'], 0);
    assert.deepEqual([...absences.absent], [['b', 'silent']]);
    hear(['a'], 299_999);
    assert.deepEqual([...absences.absent].sort(), [
      ['b', 'silent'],
      ['c', 'silent'],
    ]);
    hear(['a', 'b', 'c'], 300_000);
    assert.deepEqual([...absences.absent], []);
    hear(['a', 'c'], 300_001);
    assert.deepEqual([...absences.absent], [], 'b may be about to begin its next life');
  });

  test('are waited for where nobody knows of any: they may be about to start', () => {
    const absences = new Absences();
    absences.listened({ nodes, heard: new Set(['a']), now: 0, known: new Set(['a']) });
    absences.listened({ nodes, heard: new Set(['a']), now: 29_999 });
    assert.deepEqual([...absences.absent], []);
    absences.listened({ nodes, heard: new Set(['a']), now: 30_000 });
    assert.deepEqual([...absences.absent.keys()], ['b', 'c']);
  });
});
