import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type IndexedEntry, SessionSet } from '../../src/relay/session.ts';

test('members are those who entered and have not left, in whatever order they come and go', () => {
  const step = fc.record({ who: fc.nat(5), enters: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const people: IndexedEntry[] = Array.from({ length: 6 }, () => ({ sessionIndex: -1 }));
      const members = new SessionSet<IndexedEntry>();
      const expected = new Set<IndexedEntry>();
      for (const { who, enters } of steps) {
        const person = people[who] as IndexedEntry;
        if (!enters) {
          members.delete(person);
          expected.delete(person);
        } else if (!expected.has(person)) {
          members.add(person);
          expected.add(person);
        }
        assert.deepEqual(new Set(members), expected);
        assert.equal(members.size, expected.size);
      }
    }),
  );
});

test('whoever is looked at may leave meanwhile, and nobody is left out', () => {
  const members = new SessionSet<IndexedEntry>();
  for (let count = 0; count < 5; count += 1) members.add({ sessionIndex: -1 });
  let seen = 0;
  for (const member of members) {
    seen += 1;
    members.delete(member);
  }
  assert.equal(seen, 5);
  assert.equal(members.size, 0);
});
