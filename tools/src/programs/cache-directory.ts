import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { imagesFingerprint } from '../images/image-sources.ts';
import { catalog, type GoBuild, goBuilds, type ProgramName } from './catalog.ts';

/** Everything that is fetched lives below this folder, and nothing outside it is written. */
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

/** By release, since a home directory may be shared by machines whose libraries differ. */
export function debianDirectory(): string {
  return join(cacheDirectory(), 'debian', `${systemRelease()}-${process.arch}`);
}

export function goDirectory(build: GoBuild): string {
  return join(cacheDirectory(), build, goBuilds[build].version);
}

/** By platform alone: wheels say themselves how old a C library they run on. */
export function pypiDirectory(): string {
  return join(cacheDirectory(), 'pypi', `${process.platform}-${process.arch}`);
}

/** Of these there are several at a time: each is named by what went into it. */
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

/** Removes the folders beside this one that were used longest ago, so that `count` of them are left; whoever uses one touches it. */
export function keepMostRecent(folder: string, count: number): void {
  const around = dirname(folder);
  const others = readdirSync(around)
    .map((name) => join(around, name))
    .filter((path) => path !== folder)
    .map((path) => ({ path, usedMs: statSync(path).mtimeMs }))
    .sort((a, b) => b.usedMs - a.usedMs);
  for (const { path } of others.slice(count - 1)) rmSync(path, { recursive: true, force: true });
}
