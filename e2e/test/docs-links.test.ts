// A link that leads nowhere is found here, and not by its reader.
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { posix } from 'node:path';
import { test } from 'node:test';
import { anchorsIn, brokenLinks, linksIn, listPages, readPage } from '../src/docs/markdown.ts';

test('each link of each page leads somewhere', () => {
  const all = listPages();
  assert.ok(all.length > 20, `only ${all.length} pages were found`);
  assert.deepEqual(
    all.flatMap((path) => brokenLinks(path, readPage(path))),
    [],
  );
});

test('each page of docs is linked from another page', () => {
  const linked = new Set(
    listPages().flatMap((path) =>
      linksIn(readPage(path))
        .map(({ target }) => posix.join(posix.dirname(path), target.split('#')[0] ?? ''))
        .filter((target) => target !== path),
    ),
  );
  const alone = listPages().filter((path) => path.startsWith('docs/') && !linked.has(path));
  // The list of decisions is a folder.
  assert.deepEqual(
    alone.filter((path) => !linked.has(posix.dirname(path))),
    [],
  );
});

test('a link is read as GitHub reads it, and code that looks like one is none', () => {
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

test('what is wrong with a link is said with page and line', () => {
  const page = 'Good: [a](errors.md#codes), [b](../README.md), [c](https://kubernetes.io/docs/)';
  assert.deepEqual(brokenLinks('docs/x.md', page), []);
  const wrong =
    '[a](nowhere.md)\n[b](errors.md#nowhere)\n[c](http://example.com)\n[d](../../etc)\n[e](examples/dns.yaml#x)';
  assert.deepEqual(brokenLinks('docs/x.md', wrong), [
    'docs/x.md:1: (nowhere.md) is not there',
    'docs/x.md:2: (errors.md#nowhere) docs/errors.md has no such heading',
    'docs/x.md:3: (http://example.com) is not https',
    'docs/x.md:4: (../../etc) leads out of the repository; use a relative path',
    'docs/x.md:5: (examples/dns.yaml#x) has an anchor, and is no Markdown page',
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
