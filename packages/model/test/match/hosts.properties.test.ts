import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileHosts, parseHost } from '@weir/model';
import fc from 'fast-check';

const names = fc
  .array(fc.constantFrom('a', 'b', 'xn--c'), { minLength: 1, maxLength: 4 })
  .map((labels) => labels.join('.'));
const hosts = fc.tuple(fc.constantFrom('', '*.'), names).map((parts) => parts.join(''));
const owned = fc.array(fc.tuple(hosts, fc.nat()), { maxLength: 20 });

/** Every host is looked at; an exact one is better than any wildcard, a longer wildcard better than a shorter. */
function linearFind(table: readonly (readonly [string, number])[], name: string): number | undefined {
  const labels = name.split('.');
  const fits = (host: string): boolean => {
    const wanted = host.split('.');
    return (
      wanted.length === labels.length &&
      wanted.every((label, at) => label === labels[at] || (at === 0 && label === '*'))
    );
  };
  const rank = (host: string): number => (host.startsWith('*') ? host.length : 1_000);
  const found = table.filter(([host]) => fits(host)).sort(([a], [b]) => rank(b) - rank(a));
  return found[0]?.[1];
}

test('the compiled hosts agree with a linear search', () => {
  fc.assert(
    fc.property(owned, fc.array(names, { maxLength: 20 }), (table, asked) => {
      const compiled = compileHosts(table);
      for (const name of asked) assert.equal(compiled.find(name), linearFind(table, name), name);
    }),
    { numRuns: 1_000 },
  );
});

test('a host that was parsed is parsed to itself, and is found under its own name', () => {
  fc.assert(
    fc.property(fc.oneof(fc.domain(), fc.string()), (text) => {
      const host = parseHost(text);
      if (host === undefined) return;
      assert.equal(parseHost(host), host);
      const asked = host.replace('*', 'any');
      assert.equal(compileHosts([[host, 1]]).find(asked.toUpperCase()), 1);
    }),
    { numRuns: 1_000 },
  );
});
