/*
 * npm run release: turns the fragments of .changeset into the next release. Sets the version of all packages, the charts and the lock
 * file, writes CHANGELOG.md and removes the fragments, but commits nothing. docs/releasing.md describes the next steps.
 */
import { execFileSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Changeset } from './release-files.ts';
import { addRelease, setChartVersion, setImageVersions, setLockVersions } from './release-files.ts';

const root = process.cwd();
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const rewrite = (path: string, change: (text: string) => string): void =>
  writeFileSync(join(root, path), change(read(path)));

const fragments = pendingChangesets();
if (fragments.length === 0) {
  console.error('.changeset contains no fragments to release; describe a change with: npm run change');
  process.exit(1);
}
runChangeset('version');
const folders = globSync('{packages/*,tools}/package.json', { cwd: root }).map(dirname);
const version = String(JSON.parse(read('packages/cli/package.json')).version);
for (const chart of globSync('charts/*/Chart.yaml', { cwd: root }))
  rewrite(chart, (text) => setChartVersion(text, version));
for (const page of globSync('docs/**/*.{md,yaml}', { cwd: root }))
  rewrite(page, (text) => setImageVersions(text, version));
rewrite('package-lock.json', (lock) => setLockVersions(lock, { version, folders }));
rewrite('CHANGELOG.md', (changelog) => addRelease(changelog, { version, date: releaseDate(), changesets: fragments }));
console.log(
  `Prepared ${version} from ${fragments.length} fragments; review CHANGELOG.md, then continue with docs/releasing.md.`,
);

/** Returns the pending fragments. Reads them from a file, because `changeset status` prints JSON only to a file. */
function pendingChangesets(): readonly Changeset[] {
  const folder = mkdtempSync(join(tmpdir(), 'weir-release-'));
  try {
    const file = join(folder, 'status.json');
    runChangeset('status', `--output=${file}`);
    return (JSON.parse(readFileSync(file, 'utf8')) as { changesets: readonly Changeset[] }).changesets;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function runChangeset(...args: readonly string[]): void {
  const program = join(root, 'node_modules/@changesets/cli/bin.js');
  execFileSync(process.execPath, [program, ...args], { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Returns the date of SOURCE_DATE_EPOCH, so that a release can be reproduced, or today if the variable is not set. */
function releaseDate(): string {
  const epoch = process.env.SOURCE_DATE_EPOCH;
  return (epoch ? new Date(Number(epoch) * 1000) : new Date()).toISOString().slice(0, 10);
}
