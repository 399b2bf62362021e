import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { imagesFingerprint } from '../images/image-sources.ts';
import { catalog, type GoBuild, goBuilds, type ProgramName } from './catalog.ts';

/** Returns the folder that contains all fetched programs. Fetching a program writes only below this folder. */
export function cacheDirectory(): string {
  return resolve(process.env.WEIR_CACHE || join(homedir(), '.cache', 'weir'));
}

export function cachedProgramPath(name: ProgramName): string {
  const origin = catalog[name];
  switch (origin.kind) {
    case 'debian':
      return join(debianDirectory(), name, 'bin', name);
    case 'go':
      return join(goDirectory(origin.build), name);
    case 'pypi':
      return join(pypiDirectory(), name, origin.file);
    case 'images':
      return join(imagesDirectory(), 'archives', imagesFingerprint());
  }
}

/** Returns a folder named by the OS release, because hosts that share a home directory may have different system libraries. */
export function debianDirectory(): string {
  return join(cacheDirectory(), 'debian', `${systemRelease()}-${process.arch}`);
}

export function goDirectory(build: GoBuild): string {
  return join(cacheDirectory(), build, goBuilds[build].version);
}

/** Returns a folder named by the platform. The OS release does not matter, because pip selects a wheel by the C library version. */
export function pypiDirectory(): string {
  return join(cacheDirectory(), 'pypi', `${process.platform}-${process.arch}`);
}

/** Returns the folder of all sets of images. Each set has a subfolder that is named by a digest of the inputs. */
export function imagesDirectory(): string {
  return join(cacheDirectory(), 'images');
}

function systemRelease(): string {
  try {
    const lines = readFileSync('/etc/os-release', 'utf8');
    const value = (key: string): string => new RegExp(`^${key}="?([\\w.-]+)`, 'm').exec(lines)?.[1] ?? 'unknown';
    return `${value('ID')}-${value('VERSION_ID')}`;
  } catch {
    return process.platform;
  }
}

/** Keeps `folder` and the most recently used of its sibling folders, `count` folders in total. The mtime is the time of the last use. */
export function keepMostRecent(folder: string, count: number): void {
  const parent = dirname(folder);
  const others = readdirSync(parent)
    .map((name) => join(parent, name))
    .filter((path) => path !== folder)
    .map((path) => ({ path, usedMs: statSync(path).mtimeMs }))
    .sort((a, b) => b.usedMs - a.usedMs);
  for (const { path } of others.slice(count - 1)) rmSync(path, { recursive: true, force: true });
}
