import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { parse } from 'yaml';
import { addRelease, setChartVersion } from '../src/release/release-files.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const PAGES = 'docs/**/*.{md,yaml}';
const VERSIONED = ['{packages/*,bench,e2e,tools}/package.json', 'charts/*/Chart.yaml', '.changeset/*', PAGES];
const FRAGMENT = `---\n"@weir/model": minor\n"@weir/cli": patch\n---\n\nA release is prepared\nin a copy.\n`;

type Versions = Readonly<Record<string, string>>;

const packageVersions = (folder: string): Versions =>
  Object.fromEntries(
    globSync('{packages/*,tools}/package.json', { cwd: folder }).map((path) => [
      dirname(path),
      JSON.parse(readFileSync(join(folder, path), 'utf8')).version,
    ]),
  );
const chartVersions = (folder: string): Versions =>
  Object.fromEntries(
    globSync('charts/*/Chart.yaml', { cwd: folder }).flatMap((path) => {
      const { version, appVersion } = parse(readFileSync(join(folder, path), 'utf8'));
      return [
        [path, version],
        [`${path}: appVersion`, String(appVersion)],
      ];
    }),
  );
/** Returns the versions of Weir's images in the pages and manifests of the docs. */
const imageVersions = (folder: string): Versions =>
  Object.fromEntries(
    globSync(PAGES, { cwd: folder }).flatMap((path) => {
      const images = readFileSync(join(folder, path), 'utf8').matchAll(/ghcr\.io\/weir-dev\/[a-z-]+:([\w.+-]*\w)/g);
      return [...images].map(([image, version = ''], index) => [`${path}: ${index} ${image}`, version]);
    }),
  );

describe('npm run release', () => {
  test('sets one version in packages, charts, lock file, changelog and docs', async () => {
    await using copy = temporaryDirectory('release');
    const at = (path: string): string => join(copy.path, path);
    for (const path of globSync(VERSIONED, { cwd: root })) cpSync(join(root, path), at(path), { recursive: true });
    for (const path of ['package.json', 'package-lock.json', 'CHANGELOG.md']) cpSync(join(root, path), at(path));
    symlinkSync(join(root, 'node_modules'), at('node_modules'));
    writeFileSync(at('.changeset/of-the-test.md'), FRAGMENT);
    inGit(copy.path);
    const before = packageVersions(copy.path);
    const release = await spawnProcess({
      command: process.execPath,
      args: ['--conditions=source', join(root, 'tools/src/release/prepare.ts')],
      cwd: copy.path,
      env: { ...process.env, SOURCE_DATE_EPOCH: '1796083200' },
      mayExit: true,
    });
    const { code } = await release.exited;
    assert.equal(code, 0, release.output());

    const after = packageVersions(copy.path);
    const version = after['packages/cli'] ?? '';
    assert.notEqual(version, before['packages/cli']);
    assert.ok(release.output().includes(`Prepared ${version} from`), release.output());
    assert.ok(Object.keys(imageVersions(copy.path)).length > 1);
    for (const found of Object.entries({ ...after, ...chartVersions(copy.path), ...imageVersions(copy.path) }))
      assert.deepEqual(found, [found[0], version]);
    const lock = JSON.parse(readFileSync(at('package-lock.json'), 'utf8')).packages;
    for (const folder of Object.keys(after)) assert.equal(lock[folder].version, version, folder);
    assert.deepEqual(readdirSync(at('.changeset')), ['config.json']);
    const changelog = readFileSync(at('CHANGELOG.md'), 'utf8');
    assert.ok(changelog.includes(`\n## ${version} (2026-12-01)\n\n### Features`), changelog.slice(0, 500));
    assert.equal(changelog.split('- A release is prepared\n  in a copy.\n').length, 2);
  });
});

test('charts and docs have the version of the packages', () => {
  const versions = Object.entries({ ...packageVersions(root), ...chartVersions(root), ...imageVersions(root) });
  const [, version] = versions[0] ?? [];
  assert.deepEqual(
    versions.filter(([, each]) => each !== version),
    [],
  );
});

/** Creates a git repository with the branch main, because changesets compares the working tree with this branch. */
function inGit(cwd: string): void {
  const identity = ['-c', 'user.name=test', '-c', 'user.email=test@example.com', '-c', 'commit.gpgsign=false'];
  execFileSync('git', ['init', '--quiet', '--initial-branch=main'], { cwd });
  execFileSync('git', ['add', 'package.json'], { cwd });
  execFileSync('git', [...identity, 'commit', '--quiet', '--message=copy'], { cwd });
}

test('the changelog lists the newest release first and each fragment once, under its highest bump', () => {
  const releases = [
    { name: '@weir/model', type: 'patch' },
    { name: '@weir/cli', type: 'minor' },
  ] as const;
  const changesets = [
    { id: 'b', summary: 'Second.', releases },
    { id: 'a', summary: 'First\nof all.', releases },
    { id: 'c', summary: 'Unseen.', releases: [] },
    { id: 'd', summary: 'Third.', releases: releases.slice(0, 1) },
  ];
  const first = addRelease('# Changelog\n\nWhat.\n', { version: '0.1.0', date: '2026-12-01', changesets: [] });
  assert.equal(
    addRelease(first, { version: '0.2.0', date: '2026-12-02', changesets }),
    `# Changelog

What.

## 0.2.0 (2026-12-02)

### Features

- First
  of all.
- Second.

### Fixes

- Third.

## 0.1.0 (2026-12-01)
`,
  );
});

test('a chart gets the product version, also in dependencies on local charts only', () => {
  const chart = `# why
name: weir
version: 0.1.0
appVersion: 0.1.0
kubeVersion: '>=1.30.0-0'
dependencies:
  - name: weir-crds
    version: 0.1.0
    repository: file://../weir-crds
  - name: other
    version: 7.0.0
    repository: oci://example.com/charts
`;
  const [head, localDependency, otherDependency] = chart.replaceAll('0.1.0', '0.2.0').split(/(?= {2}- )/);
  assert.equal(setChartVersion(chart, '0.2.0'), `${head}${localDependency}${otherDependency}`);
});
