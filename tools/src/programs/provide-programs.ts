import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { buildImages } from '../images/build-images.ts';
import { cacheDirectory } from './cache-directory.ts';
import { catalog, type ProgramLookup, type ProgramName } from './catalog.ts';
import { fetchDebian } from './fetch-debian.ts';
import { fetchGo } from './fetch-go.ts';
import { fetchPypi } from './fetch-pypi.ts';
import { findProgram, remedyFor, searchProgram } from './find-program.ts';

export type ProvideOptions = { readonly progress?: (text: string) => void };

/** Finds each program, or fetches it into the cache. Returns a program that cannot be fetched as `missing`, with the reason. */
export async function providePrograms(
  names: readonly ProgramName[],
  options: ProvideOptions = {},
): Promise<ProgramLookup[]> {
  const progress = options.progress ?? ((text: string): void => console.error(`weir: ${text}`));
  const programs: ProgramLookup[] = [];
  // Fetches one program at a time, because only one process may hold the lock of the cache, and a build uses all cores.
  for (const name of new Set(names)) {
    const found = findProgram(name);
    programs.push(found.kind === 'available' ? found : await fetchProgram(name, progress));
  }
  return programs;
}

async function fetchProgram(name: ProgramName, progress: (text: string) => void): Promise<ProgramLookup> {
  const report = (text: string): void => progress(`${name}: ${text}`);
  const onWait = (): void => report('waiting for another process that fetches programs');
  try {
    return await withFileLock(join(cacheDirectory(), 'lock'), onWait, async () => {
      const fetchedMeanwhile = searchProgram(name);
      if (fetchedMeanwhile.kind === 'available') return fetchedMeanwhile;
      await fetchFromOrigin(name, report);
      return searchProgram(name);
    });
  } catch (error) {
    return { kind: 'missing', name, reason: (error as Error).message, remedy: remedyFor(name) };
  }
}

async function fetchFromOrigin(name: ProgramName, report: (text: string) => void): Promise<void> {
  const origin = catalog[name];
  switch (origin.kind) {
    case 'debian':
      return fetchDebian({ ...origin, name }, report);
    case 'go':
      return fetchGo(origin.build, report);
    case 'pypi':
      return fetchPypi({ ...origin, name }, report);
    case 'images':
      return buildImages(report);
  }
}

/** The program flock(1), which is part of util-linux and installed on every Debian system. */
const FLOCK = 'flock';

/**
 * Waits until no other process holds the lock file, and runs `work` with the lock held. flock(1) holds the lock until this process
 * closes its end of flock's stdin, so a process that dies leaves no stale lock. Without flock(1), `work` runs unlocked. Concurrent work
 * is then harmless, because results are renamed into place when complete.
 */
export async function withFileLock<T>(lockFile: string, onWait: () => void, work: () => Promise<T>): Promise<T> {
  mkdirSync(dirname(lockFile), { recursive: true });
  const holder = spawn(FLOCK, ['--exclusive', lockFile, 'sh', '-c', 'echo held; exec cat > /dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const waitTimer = setTimeout(onWait, 500);
  try {
    await new Promise<void>((resolve, reject) => {
      createInterface({ input: holder.stdout }).once('line', () => resolve());
      holder.once('error', (error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? resolve() : reject(error)));
      holder.once('exit', (code) => reject(new Error(`flock ${lockFile} exited with code ${code}`)));
    });
    clearTimeout(waitTimer);
    return await work();
  } finally {
    clearTimeout(waitTimer);
    holder.stdin.end();
  }
}
