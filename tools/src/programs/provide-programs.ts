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

/** Finds each program, or else fetches it once into the cache; what cannot be had comes back as missing, with the reason. */
export async function providePrograms(
  names: readonly ProgramName[],
  options: ProvideOptions = {},
): Promise<ProgramLookup[]> {
  const progress = options.progress ?? ((text: string): void => console.error(`weir: ${text}`));
  const programs: ProgramLookup[] = [];
  // one after the other: they share the download lock, and a build uses all cores by itself
  for (const name of new Set(names)) {
    const found = findProgram(name);
    programs.push(found.kind === 'available' ? found : await fetchProgram(name, progress));
  }
  return programs;
}

async function fetchProgram(name: ProgramName, progress: (text: string) => void): Promise<ProgramLookup> {
  const say = (text: string): void => progress(`${name}: ${text}`);
  const waiting = (): void => say('waiting for another process that fetches programs');
  try {
    return await withFileLock(join(cacheDirectory(), 'lock'), waiting, async () => {
      const byNow = searchProgram(name);
      if (byNow.kind === 'available') return byNow;
      await fetchFromOrigin(name, say);
      return searchProgram(name);
    });
  } catch (error) {
    return { kind: 'missing', name, reason: (error as Error).message, remedy: remedyFor(name) };
  }
}

async function fetchFromOrigin(name: ProgramName, say: (text: string) => void): Promise<void> {
  const origin = catalog[name];
  switch (origin.kind) {
    case 'debian':
      return fetchDebian({ ...origin, name }, say);
    case 'go':
      return fetchGo(origin.build, say);
    case 'pypi':
      return fetchPypi({ ...origin, name }, say);
    case 'images':
      return buildImages(say);
  }
}

/** Of util-linux, which every Debian has. */
const FLOCK = 'flock';

/**
 * Runs `work` while no other process holds the same lock file. The kernel keeps the lock for flock(1), which holds it for
 * as long as our end of its stdin is open: a process that dies, however it dies, leaves no stale lock behind.
 * Where there is no flock(1) the work runs unlocked; results are put in place by rename, so that is slower, never wrong.
 */
export async function withFileLock<T>(lockFile: string, waiting: () => void, work: () => Promise<T>): Promise<T> {
  mkdirSync(dirname(lockFile), { recursive: true });
  const holder = spawn(FLOCK, ['--exclusive', lockFile, 'sh', '-c', 'echo held; exec cat > /dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const notice = setTimeout(waiting, 500);
  try {
    await new Promise<void>((resolve, reject) => {
      createInterface({ input: holder.stdout }).once('line', () => resolve());
      holder.once('error', (error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? resolve() : reject(error)));
      holder.once('exit', (code) => reject(new Error(`flock ${lockFile} ended with exit code ${code}`)));
    });
    clearTimeout(notice);
    return await work();
  } finally {
    clearTimeout(notice);
    holder.stdin.end();
  }
}
