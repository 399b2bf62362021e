import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findHost, parseHost } from '@weir/model';
import fc from 'fast-check';

const names = fc
  .array(fc.constantFrom('a', 'b', 'xn--c'), { minLength: 1, maxLength: 4 })
  .map((labels) => labels.join('.'));
const hosts = fc.tuple(fc.constantFrom('', '*.'), names).map((parts) => parts.join(''));
const owned = fc.array(fc.tuple(hosts, fc.nat()), { maxLength: 20 });

/** A reference implementation of `findHost`: a linear search through all hosts. An exact host takes precedence over a wildcard. */
function linearFind(owners: readonly (readonly [string, number])[], name: string): number | undefined {
  const labels = name.split('.');
  const matches = (host: string): boolean => {
    const pattern = host.split('.');
    return (
      pattern.length === labels.length &&
      pattern.every((label, at) => label === labels[at] || (at === 0 && label === '*'))
    );
  };
  const rank = (host: string): number => (host.startsWith('*') ? host.length : 1_000);
  const found = owners.filter(([host]) => matches(host)).sort(([a], [b]) => rank(b) - rank(a));
  return found[0]?.[1];
}

test('findHost agrees with a linear search', () => {
  fc.assert(
    fc.property(owned, fc.array(names, { maxLength: 20 }), (owners, requested) => {
      const index = new Map(owners);
      for (const name of requested) assert.equal(findHost(index, name), linearFind([...index], name), name);
    }),
    { numRuns: 1_000 },
  );
});

test('a parsed host parses to itself and is found by its own name', () => {
  fc.assert(
    fc.property(fc.oneof(fc.domain(), fc.string()), (text) => {
      const host = parseHost(text);
      if (host === undefined) return;
      assert.equal(parseHost(host), host);
      const name = host.replace('*', 'any');
      assert.equal(findHost(new Map([[host, 1]]), name.toUpperCase()), 1);
    }),
    { numRuns: 1_000 },
  );
});
