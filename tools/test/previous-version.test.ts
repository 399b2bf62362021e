import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { temporaryDirectory } from '@weir/testkit';
import { type FoundVersion, findVersion } from '../src/previous-version/find-version.ts';
import { hasAllPackages, linkModules } from '../src/previous-version/previous-version.ts';

const { path: folder, close } = temporaryDirectory('versions');
after(close);
const git = (cwd: string, ...args: readonly string[]): string =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@test.invalid', ...args], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();

/** Creates a git repository with one commit and one tag for each name in `commits`. */
function history(name: string, commits: readonly string[]): { readonly path: string; of(commit: string): string } {
  const path = join(folder, name);
  git(folder, 'init', '--quiet', path);
  for (const commit of commits) {
    git(path, 'commit', '--quiet', '--allow-empty', '--message', commit);
    git(path, 'tag', commit);
  }
  return { path, of: (commit) => git(path, 'rev-parse', commit) };
}

const found = (version: FoundVersion): string => (version.kind === 'found' ? version.name : version.reason);

describe('the previous version', () => {
  test('is the release with the highest number below the current commit', () => {
    const { path, of } = history('releases', ['begin', 'v0.9.0', 'v0.10.0-rc.1', 'v0.10.0', 'next']);
    assert.deepEqual(findVersion(path, { fallbackCommit: 'begin' }), {
      kind: 'found',
      name: 'v0.10.0',
      commit: of('v0.10.0'),
    });
    git(path, 'checkout', '--quiet', 'v0.10.0');
    assert.equal(found(findVersion(path, { fallbackCommit: 'begin' })), 'v0.10.0-rc.1');
    git(path, 'checkout', '--quiet', 'v0.10.0-rc.1');
    assert.equal(found(findVersion(path, { fallbackCommit: 'begin' })), 'v0.9.0');
  });

  test('is the fallback commit without releases, and always a requested version', () => {
    const { path, of } = history('unreleased', ['begin', 'next']);
    assert.deepEqual(findVersion(path, { fallbackCommit: of('begin') }), {
      kind: 'found',
      name: of('begin'),
      commit: of('begin'),
    });
    git(path, 'tag', 'v1.0.0', 'begin');
    assert.equal(found(findVersion(path, { requestedVersion: 'next', fallbackCommit: 'begin' })), 'next');
  });

  test('throws with the command to fetch a commit that the clone lacks', () => {
    const { path, of } = history('complete', ['begin', 'next']);
    git(folder, 'clone', '--quiet', '--depth=1', '--no-tags', `file://${path}`, 'shallow');
    assert.throws(() => findVersion(join(folder, 'shallow'), { fallbackCommit: of('begin') }), {
      message: `the previous version is ${of('begin')}, which this clone does not contain (the clone is shallow); run: git fetch --unshallow --tags`,
    });
    assert.throws(
      () => findVersion(path, { requestedVersion: 'gone', fallbackCommit: 'begin' }),
      /is gone, .* not contain; run: git fetch origin gone$/,
    );
  });

  test('is missing for sources without history and inside another repository', () => {
    const { path } = history('another', ['v1.0.0', 'next']);
    const unpacked = join(path, 'unpacked');
    mkdirSync(unpacked);
    for (const sources of [folder, unpacked]) {
      assert.match(found(findVersion(sources, { fallbackCommit: 'v1.0.0' })), /is not a clone of the repository/);
      assert.throws(
        () => findVersion(sources, { requestedVersion: 'v1.0.0', fallbackCommit: 'v1.0.0' }),
        /cannot use WEIR_PREVIOUS=v1\.0\.0: /,
      );
    }
  });
});

describe('the node_modules of the previous version', () => {
  const lock = (packages: object): string => JSON.stringify({ packages });
  const ours = lock({
    '': {},
    'node_modules/a': { integrity: 'sha512-a' },
    'node_modules/b': { integrity: 'sha512-b' },
  });

  test('are shared if every runtime package has the same path and integrity', () => {
    const runs = { '': {}, 'node_modules/a': { integrity: 'sha512-a' }, 'node_modules/@weir/x': { link: true } };
    assert.equal(
      hasAllPackages(ours, lock({ ...runs, 'node_modules/lint': { integrity: 'sha512-lint', dev: true } })),
      true,
    );
    assert.equal(hasAllPackages(ours, lock({ ...runs, 'node_modules/b': { integrity: 'sha512-other' } })), false);
    assert.equal(
      hasAllPackages(ours, lock({ ...runs, 'packages/x/node_modules/a': { integrity: 'sha512-a' } })),
      false,
    );
  });

  test('are linked into the unpacked tree, except the packages of Weir', () => {
    const write = (path: string, value: object): void => {
      mkdirSync(join(folder, path, '..'), { recursive: true });
      writeFileSync(join(folder, path), JSON.stringify(value));
    };
    for (const each of ['from', 'tree']) write(`${each}/packages/store/package.json`, { name: '@weir/store' });
    write('from/node_modules/ioredis/package.json', { name: 'ioredis' });
    write('from/node_modules/@fastify/static/package.json', { name: '@fastify/static' });
    write('from/packages/store/node_modules/ioredis/package.json', { name: 'ioredis' });
    mkdirSync(join(folder, 'from/node_modules/@weir'));
    symlinkSync(join(folder, 'from/packages/store'), join(folder, 'from/node_modules/@weir/store'));
    linkModules(join(folder, 'tree'), join(folder, 'from'));
    const target = (path: string): string =>
      realpathSync(join(folder, 'tree', path)).slice(realpathSync(folder).length);
    assert.equal(target('node_modules/ioredis'), '/from/node_modules/ioredis');
    assert.equal(target('node_modules/@fastify/static'), '/from/node_modules/@fastify/static');
    assert.equal(target('packages/store/node_modules/ioredis'), '/from/packages/store/node_modules/ioredis');
    assert.equal(target('node_modules/@weir/store'), '/tree/packages/store');
  });
});
