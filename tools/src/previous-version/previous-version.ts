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
/** The last state without images and charts. Stands here until the first release: from then on there is a tag. */
const FALLBACK_COMMIT = '5ebcdc77726659cf475b05540c85b3f2a853cf0a';

/**
 * Declares that a test runs processes of the version before this one: `WEIR_PREVIOUS`, else the last release. To be called before the file
 * moves into a namespace, from where no registry can be reached. Skipped where the sources have no history; throws where that version only
 * has to be fetched.
 */
export function requirePreviousVersion(): SkipOptions {
  const found = previousVersion();
  if (found.kind === 'missing') return skipFor([`there is no previous version: ${found.reason}`]);
  modulesFor(CHECKOUT, found.commit);
  return {};
}

/** Its sources in a folder of their own, ready to run: `packages/proxy/src/main.ts` and so on. */
export function unpackPreviousVersion(): TemporaryDirectory & { readonly name: string } {
  const found = previousVersion();
  if (found.kind === 'missing') throw new Error(`there is no previous version: ${found.reason}`);
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
 * The folder with the `node_modules` that a commit of this checkout runs on: the checkout itself when both locks name the same, else one in
 * the cache, named by the lock, which the first call fills by `npm ci`. What only development needs does not count.
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

/** Whether everything that runs by the second lock is in the first, at the same place and with the same bytes. */
export function hasAllPackages(lock: string, other: string): boolean {
  const ours = (JSON.parse(lock) as PackageLock).packages;
  const theirs = Object.entries((JSON.parse(other) as PackageLock).packages);
  return theirs
    .filter(([path, { dev, link }]) => path.includes('node_modules/') && !dev && !link)
    .every(([path, { integrity }]) => integrity !== undefined && ours[path]?.integrity === integrity);
}

/** The finished folder appears by one rename. */
function installModules(checkout: string, commit: string, folder: string): void {
  mkdirSync(join(folder, '..'), { recursive: true });
  const draft = mkdtempSync(`${folder}-`);
  try {
    unpackCommit(checkout, commit, { into: draft, paths: ['.npmrc', 'package-lock.json', ':(glob)**/package.json'] });
    // Neither scripts of strangers, nor a Node: ours runs it.
    const flags = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
    execFileSync('npm', ['ci', ...flags], { cwd: draft, stdio: ['ignore', 'ignore', 'inherit'] });
    if (!existsSync(folder)) renameSync(draft, folder);
    keepMostRecent(folder, 3);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

export type UnpackCommitOptions = { readonly into: string; readonly paths: readonly string[] };

/** The files of a commit, as git has them. */
export function unpackCommit(checkout: string, commit: string, { into, paths }: UnpackCommitOptions): void {
  const archive = execFileSync('git', ['archive', '--format=tar', commit, '--', ...paths], {
    cwd: checkout,
    maxBuffer: 1 << 28,
  });
  execFileSync('tar', ['-x', '-C', into], { input: archive });
}

/**
 * Gives a tree the modules of another folder, by links, so that they may be shared; but its own packages are its own: by the links of that
 * folder a program of one version would load the other's.
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

/** Packages of others: npm links those of the workspace. */
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
