import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '@weir/testkit';
import { buildContextFiles, imagesFingerprint } from '../src/images/image-sources.ts';
import { keepMostRecent } from '../src/programs/cache-directory.ts';

test('the build context contains sources and build scripts but no tests', () => {
  const files = buildContextFiles();
  for (const path of [
    'package-lock.json',
    'Dockerfile.proxy',
    'packages/proxy/src/main.ts',
    'packages/store/src/lua/publish-table.lua',
    'packages/cli/bin/weir.js',
    'packages/console/page/index.html',
    'tools/images/copy-application',
  ]) {
    assert.ok(files.includes(path), `${path} is in the build context`);
  }
  assert.deepEqual(
    files.filter((path) => /\btest\b|node_modules|dist\//.test(path)),
    [],
  );
});

test('equal sources have equal fingerprints', () => {
  assert.match(imagesFingerprint(), /^[0-9a-f]{16}$/);
  assert.equal(imagesFingerprint(), imagesFingerprint());
});

test('keepMostRecent keeps the given folder and the most recently used folders', async () => {
  await using folder = temporaryDirectory('recent');
  const names = ['oldest', 'older', 'newer', 'newest'];
  for (const [index, name] of names.entries()) {
    mkdirSync(join(folder.path, name));
    utimesSync(join(folder.path, name), index + 1, index + 1);
  }
  keepMostRecent(join(folder.path, 'older'), 3);
  assert.deepEqual(readdirSync(folder.path).sort(), ['newer', 'newest', 'older']);
});
