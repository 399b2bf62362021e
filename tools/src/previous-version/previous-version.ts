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
import { type FoundVersion, findVersion } from './find-version.ts';

const CHECKOUT = fileURLToPath(new URL('../../../', import.meta.url));
/** The previous version until the first release tag exists: the last commit before images and charts were added. */
const FALLBACK_COMMIT = '5ebcdc77726659cf475b05540c85b3f2a853cf0a';

/**
 * Declares that a test runs processes of the previous version, which is `WEIR_PREVIOUS` or else the last release. Skips the test if the
 * sources have no git history. Throws if the history exists but this clone lacks the version. Call this function before `insideNamespace`,
 * because the function may install npm packages, and no npm registry is reachable from the network namespace.
 */
export function requirePreviousVersion(): SkipOptions {
  const found = previousVersion();
  if (found.kind === 'missing') return skipFor([`no previous version is available: ${found.reason}`]);
  modulesFor(CHECKOUT, found.commit);
  return {};
}

/** Unpacks the previous version into a temporary folder, from which its programs can run, such as `packages/proxy/src/main.ts`. */
export function unpackPreviousVersion(): TemporaryDirectory & { readonly name: string } {
  const found = previousVersion();
  if (found.kind === 'missing') throw new Error(`no previous version is available: ${found.reason}`);
  const directory = temporaryDirectory('previous');
  unpackCommit(CHECKOUT, found.commit, { into: directory.path, paths: ['package.json', 'packages', 'charts'] });
  linkModules(directory.path, modulesFor(CHECKOUT, found.commit));
  return { ...directory, name: found.name };
}

function previousVersion(): FoundVersion {
  const requestedVersion = process.env.WEIR_PREVIOUS || undefined;
  return findVersion(CHECKOUT, { requestedVersion, fallbackCommit: FALLBACK_COMMIT });
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
