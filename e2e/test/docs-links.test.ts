// Checks the links of all Markdown pages.
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { posix } from 'node:path';
import { test } from 'node:test';
import { anchorsIn, brokenLinks, linksIn, listPages, readPage } from '../src/docs/markdown.ts';

test('every link of every page has a target', () => {
  const all = listPages();
  assert.ok(all.length > 20, `only ${all.length} pages were found`);
  assert.deepEqual(
    all.flatMap((path) => brokenLinks(path, readPage(path))),
    [],
  );
});

test('every page of docs is linked from another page', () => {
  const linked = new Set(
    listPages().flatMap((path) =>
      linksIn(readPage(path))
        .map(({ target }) => posix.join(posix.dirname(path), target.split('#')[0] ?? ''))
        .filter((target) => target !== path),
    ),
  );
  const unlinked = listPages().filter((path) => path.startsWith('docs/') && !linked.has(path));
  // Ignores the decision records, because other pages link to their folder.
  assert.deepEqual(
    unlinked.filter((path) => !linked.has(posix.dirname(path))),
    [],
  );
});

test('parses links and anchors like GitHub and ignores links in code', () => {
  const page = [
    '# One `two`: three, four (five)',
    '## Again',
    '## Again',
    '`[x](y)` and [a](b.md#c)',
    '```md',
    '## No heading',
    '[x](y)',
    '```',
    '![p](p.svg) <img src="q.svg">',
  ].join('\n');
  assert.deepEqual([...anchorsIn(page)], ['one-two-three-four-five', 'again', 'again-1']);
  assert.deepEqual(linksIn(page), [
    { target: 'b.md#c', line: 4 },
    { target: 'p.svg', line: 9 },
    { target: 'q.svg', line: 9 },
  ]);
});

test('reports a broken link with page and line', () => {
  const page = 'Good: [a](errors.md#codes), [b](../README.md), [c](https://kubernetes.io/docs/)';
  assert.deepEqual(brokenLinks('docs/x.md', page), []);
  const wrong =
    '[a](nowhere.md)\n[b](errors.md#nowhere)\n[c](http://example.com)\n[d](../../etc)\n[e](examples/dns.yaml#x)';
  assert.deepEqual(brokenLinks('docs/x.md', wrong), [
    'docs/x.md:1: (nowhere.md) does not exist',
    'docs/x.md:2: (errors.md#nowhere) docs/errors.md has no such heading',
    'docs/x.md:3: (http://example.com) is not https',
    'docs/x.md:4: (../../etc) points outside of the repository; use a relative path',
    'docs/x.md:5: (examples/dns.yaml#x) has an anchor but is not a Markdown page',
  ]);
});

test('every path in the map of CONTRIBUTING.md exists', () => {
  const paths = [...readPage('CONTRIBUTING.md').matchAll(/`((?:packages|charts|docs|e2e|tools)\/[^\s`]+)`/g)];
  assert.ok(paths.length > 40, `only ${paths.length} paths were found`);
  const root = new URL('../../', import.meta.url);
  assert.deepEqual(
    paths.flatMap(([, path = '']) => (globSync(path, { cwd: root }).length === 0 ? [path] : [])),
    [],
  );
});
