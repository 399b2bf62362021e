import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { keepMostRecent } from '../images/keep-recent.ts';
import { cacheDirectory } from '../programs/cache-directory.ts';
import { unpackCommit } from './unpack.ts';

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
