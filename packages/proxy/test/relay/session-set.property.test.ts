import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type IndexedEntry, SessionSet } from '../../src/relay/session.ts';

test('contains the sessions that were added and not deleted, in any order of calls', () => {
  const step = fc.record({ index: fc.nat(5), isAdded: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const sessions: IndexedEntry[] = Array.from({ length: 6 }, () => ({ sessionIndex: -1 }));
      const set = new SessionSet<IndexedEntry>();
      const expected = new Set<IndexedEntry>();
      for (const { index, isAdded } of steps) {
        const session = sessions[index] as IndexedEntry;
        if (!isAdded) {
          set.delete(session);
          expected.delete(session);
        } else if (!expected.has(session)) {
          set.add(session);
          expected.add(session);
        }
        assert.deepEqual(new Set(set), expected);
        assert.equal(set.size, expected.size);
      }
    }),
  );
});

test('iterates over every session even if sessions are deleted meanwhile', () => {
  const set = new SessionSet<IndexedEntry>();
  for (let count = 0; count < 5; count += 1) set.add({ sessionIndex: -1 });
  let seen = 0;
  for (const session of set) {
    seen += 1;
    set.delete(session);
  }
  assert.equal(seen, 5);
  assert.equal(set.size, 0);
});
