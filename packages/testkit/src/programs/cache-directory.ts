import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { imagesFingerprint } from '../images/fingerprint.ts';
import { catalog } from './catalog.ts';
import { type GoBuild, goBuilds } from './go-builds.ts';
import type { ProgramName } from './program.ts';

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
