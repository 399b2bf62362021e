import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRequestTarget, type RequestTarget } from '@weir/model';
import fc from 'fast-check';

/** Targets of parts on which programs disagree, so that most random targets need a decision. */
const PARTS = [
  '/',
  '/',
  '.',
  '..',
  '%2e',
  '%2E',
  ';',
  ';x',
  'a',
  'b',
  'A',
  '%41',
  '%c3',
  '%25',
  '%252e',
  '?',
  '~',
  '%7e',
];
const RARE_PARTS = ['%2f', '%5c', '\\', '%00', '#', '%', '%3b', ' ', '%zz', '//', '*'];
const targets = fc
  .array(
    fc.oneof(
      { weight: 20, arbitrary: fc.constantFrom(...PARTS) },
      { weight: 1, arbitrary: fc.constantFrom(...RARE_PARTS) },
    ),
    { maxLength: 16 },
  )
  .map((parts) => `/${parts.join('')}`);

const hosts = fc.oneof(
  fc.domain(),
  fc.ipV6().map((address) => `[${address}]`),
  fc.tuple(fc.domain(), fc.integer({ min: 0, max: 70_000 })).map(([host, port]) => `${host.toUpperCase()}.:0${port}`),
  fc
    .array(fc.constantFrom('a', 'B', '.', '-', ':', '0', '8', '[', ']', '@', '_'), { maxLength: 8 })
    .map((c) => c.join('')),
);

test('a parsed target parses to itself, as the same strings', () => {
  fc.assert(
    fc.property(targets, hosts, (target, host) => {
      const parsed = parseRequestTarget('GET', target, host);
      if (typeof parsed === 'string') return;
      assert.deepEqual(parseRequestTarget('GET', parsed.text, parsed.authority), parsed);
    }),
    { numRuns: 5_000 },
  );
});

test('a normal path has no dot segment, no encoded slash or dot, and no encoding in lower case', () => {
  fc.assert(
    fc.property(targets, (target) => {
      const parsed = parseRequestTarget('GET', target, 'a');
      if (typeof parsed === 'string') return;
      const { path } = parsed;
      assert.ok(path.startsWith('/'), path);
      for (const segment of path.split('/')) assert.doesNotMatch(segment, /^\.\.?(?:;|%3B|$)/, path);
      assert.doesNotMatch(path, /%2f|%5c|%2e|%7e|%[46][1-9a-f]|%[01]|\\|#|\?/i, path);
      for (const [encoding] of path.matchAll(/%../g)) assert.equal(encoding, encoding.toUpperCase(), path);
    }),
    { numRuns: 5_000 },
  );
});

test('a normal path names the same resource as the target in the resolver of browsers', () => {
  fc.assert(
    fc.property(targets, (target) => {
      const parsed = parseRequestTarget('GET', target, 'a');
      if (typeof parsed === 'string') return;
      // Browsers resolve encoded dots too, but decode nothing else. So decode what is unreserved on both sides.
      const resolved = new URL(`http://a${target}`);
      assert.equal(withoutUnreservedEncodings(resolved.pathname), withoutUnreservedEncodings(parsed.path), target);
    }),
    { numRuns: 5_000 },
  );
});

function withoutUnreservedEncodings(path: string): string {
  return path.replace(/%[0-9a-f]{2}/gi, (encoding) => {
    const character = String.fromCharCode(Number.parseInt(encoding.slice(1), 16));
    return /[\w.~-]/.test(character) ? character : encoding.toUpperCase();
  });
}

test('the parser of any text returns a target or a refusal', () => {
  const texts = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.webUrl(), targets);
  fc.assert(
    fc.property(fc.constantFrom('GET', 'OPTIONS', 'CONNECT'), texts, fc.oneof(texts, hosts), (method, target, host) => {
      const parsed = parseRequestTarget(method, target, host);
      if (typeof parsed === 'string') return;
      const { path, query, text, authority }: RequestTarget = parsed;
      assert.match(text, /^[!-~]+$/);
      assert.match(authority, /^[!-~]*$/);
      assert.equal(path + query, text);
    }),
    { numRuns: 5_000 },
  );
});
