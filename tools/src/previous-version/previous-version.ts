import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type TemporaryDirectory, temporaryDirectory } from '@weir/testkit';
import { cacheDirectory, keepMostRecent } from '../programs/cache-directory.ts';
import { type SkipOptions, skipFor } from '../programs/require-program.ts';
import { findVersion } from './find-version.ts';

const CHECKOUT = fileURLToPath(new URL('../../../', import.meta.url));
/** The previous versions until the first release tag exists. */
const FALLBACK_COMMITS = [
  // The last commit whose proxies do not share limits.
  'f815117556784071dd658951c8eb36bc4887790c',
  // The first commit whose proxies share limits, also with proxies of later versions.
  '8e64f0f31557836de00be5e8d459c2e109999f06',
] as const;

export interface PreviousVersion {
  readonly commit: string;
  /** The tag or other revision that selected the commit. */
  readonly name: string;
}

export interface RequiredVersions {
  /** Options that skip the test if no previous version is available. */
  readonly skip: SkipOptions;
  readonly versions: readonly PreviousVersion[];
}

/**
 * Declares that a test runs processes of each previous version: of `WEIR_PREVIOUS`, or else of the last release, or else of each fallback
 * commit. Skips the test if the sources have no git history. Throws if the history exists but this clone lacks a version. Call this
 * function before `insideNamespace`, because the function may install npm packages, and no npm registry is reachable from the network
 * namespace.
 */
export function requirePreviousVersions(): RequiredVersions {
  const requestedVersion = process.env.WEIR_PREVIOUS || undefined;
  const byCommit = new Map<string, PreviousVersion>();
  for (const fallbackCommit of FALLBACK_COMMITS) {
    const found = findVersion(CHECKOUT, { requestedVersion, fallbackCommit });
    if (found.kind === 'missing')
      return { skip: skipFor([`no previous version is available: ${found.reason}`]), versions: [] };
    byCommit.set(found.commit, found);
  }
  const versions = [...byCommit.values()];
  for (const { commit } of versions) modulesFor(CHECKOUT, commit);
  return { skip: {}, versions };
}

/** Unpacks a previous version into a temporary folder, from which its programs can run, such as `packages/proxy/src/main.ts`. */
export function unpackPreviousVersion({ commit }: PreviousVersion): TemporaryDirectory {
  const directory = temporaryDirectory('previous');
  unpackCommit(CHECKOUT, commit, { into: directory.path, paths: ['package.json', 'packages', 'charts'] });
  linkModules(directory.path, modulesFor(CHECKOUT, commit));
  return directory;
}

type PackageLock = {
  readonly packages: Readonly<
    Record<string, { readonly dev?: boolean; readonly link?: boolean; readonly integrity?: string }>
  >;
};

/**
 * Returns a folder whose `node_modules` contains the runtime dependencies of a commit. Returns the checkout if its lock file contains all
 * of them. Otherwise returns a folder in the cache. On first use, `npm ci` fills the folder.
 */
export function modulesFor(checkout: string, commit: string): string {
  const lock = execFileSync('git', ['show', `${commit}:package-lock.json`], { cwd: checkout, maxBuffer: 1 << 26 });
  if (hasAllPackages(readFileSync(join(checkout, 'package-lock.json'), 'utf8'), lock.toString())) return checkout;
  const folder = join(cacheDirectory(), 'modules', createHash('sha256').update(lock).digest('hex').slice(0, 16));
  if (!existsSync(folder)) installModules(checkout, commit, folder);
  const now = new Date();
  utimesSync(folder, now, now);
  return folder;
}

/** Reports whether `lock` contains every runtime package of `other` at the same path and with the same integrity. */
export function hasAllPackages(lock: string, other: string): boolean {
  const available = (JSON.parse(lock) as PackageLock).packages;
  const required = Object.entries((JSON.parse(other) as PackageLock).packages);
  return required
    .filter(([path, { dev, link }]) => path.includes('node_modules/') && !dev && !link)
    .every(([path, { integrity }]) => integrity !== undefined && available[path]?.integrity === integrity);
}

/** Installs the dependencies of a commit. Installs into a draft folder and renames it, so that `folder` is never incomplete. */
function installModules(checkout: string, commit: string, folder: string): void {
  mkdirSync(join(folder, '..'), { recursive: true });
  const draft = mkdtempSync(`${folder}-`);
  try {
    unpackCommit(checkout, commit, { into: draft, paths: ['.npmrc', 'package-lock.json', ':(glob)**/package.json'] });
    // Does not install the commit's version of Node, which is a development dependency: the current Node runs the commit's code.
    const flags = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    execFileSync('npm', ['ci', ...flags], { cwd: draft, stdio: ['ignore', 'ignore', 'inherit'] });
    if (!existsSync(folder)) renameSync(draft, folder);
    keepMostRecent(folder, 3);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

export type UnpackCommitOptions = { readonly into: string; readonly paths: readonly string[] };

/** Writes the files of a commit to `into`. */
export function unpackCommit(checkout: string, commit: string, { into, paths }: UnpackCommitOptions): void {
  const archive = execFileSync('git', ['archive', '--format=tar', commit, '--', ...paths], {
    cwd: checkout,
    maxBuffer: 1 << 28,
  });
  execFileSync('tar', ['-x', '-C', into], { input: archive });
}

/**
 * Links the third-party packages of the folder `from` into the sources in `tree`. Weir's own packages are linked to their sources in
 * `tree`, because with the links of `from` a program of one version would load packages of another version.
 */
export function linkModules(tree: string, from: string): void {
  const packages = readdirSync(join(tree, 'packages')).map((name) => join('packages', name));
  for (const folder of ['.', ...packages]) {
    const modules = join(from, folder, 'node_modules');
    for (const name of installedPackages(modules))
      symlinkTo(join(modules, name), join(tree, folder, 'node_modules', name));
  }
  for (const path of packages) symlinkTo(join(tree, path), join(tree, 'node_modules', packageName(join(tree, path))));
}

/** Returns the names of the installed third-party packages. Skips links, because npm links the packages of the workspace. */
function installedPackages(modules: string): string[] {
  if (!existsSync(modules)) return [];
  const names = readdirSync(modules).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map((scoped) => `${name}/${scoped}`) : [name],
  );
  return names.filter((name) => !name.startsWith('.') && !lstatSync(join(modules, name)).isSymbolicLink());
}

function symlinkTo(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}

function packageName(folder: string): string {
  return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name: string }).name;
}
