import type { BigIntStats, Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Problem } from '@weir/model';
import { errorMessage } from '@weir/runtime';

export interface FoundFile {
  readonly path: string;
  readonly stats: BigIntStats;
}

/** What lies under the given paths. */
export interface FoundManifests {
  readonly files: readonly FoundFile[];
  readonly directories: readonly string[];
  /** Paths that could not be looked into: what was below them is unknown, not gone. */
  readonly unreadable: readonly string[];
  readonly problems: readonly Problem[];
}

const MANIFEST_NAME = /\.(?:ya?ml|json)$/i;

/**
 * Files named by the paths (whatever their name), and manifests in the directories named, at any depth. Names with a leading dot are
 * left out: editors keep their drafts there, and a mounted ConfigMap its versions.
 */
export async function findManifests(paths: readonly string[]): Promise<FoundManifests> {
  const found = {
    files: [] as FoundFile[],
    directories: [] as string[],
    unreadable: [] as string[],
    problems: [] as Problem[],
  };
  const seen = new Set<string>();
  const unreadable = (path: string, what: string): void => {
    found.unreadable.push(path);
    found.problems.push(unreadableFileProblem(path, what));
  };
  const visit = async (path: string, isRoot: boolean): Promise<void> => {
    const stats = await stat(path, { bigint: true }).catch((error: NodeJS.ErrnoException) => error);
    if (stats instanceof Error) {
      // A link to nowhere, or a file that went between listing and looking.
      if (isRoot || stats.code !== 'ENOENT') unreadable(path, unreadableReason(stats));
      return;
    }
    // Links that lead in circles, one file by two paths.
    const id = `${stats.dev}:${stats.ino}`;
    if (seen.has(id)) return;
    seen.add(id);
    if (stats.isDirectory()) {
      found.directories.push(path);
      const entries = await readdir(path, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => error);
      if (entries instanceof Error) return unreadable(path, unreadableReason(entries));
      for (const entry of entries.filter(isCandidate)) await visit(join(path, entry.name), false);
    } else if (stats.isFile()) {
      found.files.push({ path, stats });
    } else if (isRoot) {
      unreadable(path, 'is neither a file nor a directory');
    }
  };
  for (const path of paths) await visit(path, true);
  return found;
}

function isCandidate(entry: Dirent): boolean {
  if (entry.name.startsWith('.')) return false;
  return entry.isDirectory() || entry.isSymbolicLink() || (entry.isFile() && MANIFEST_NAME.test(entry.name));
}

export function unreadableFileProblem(path: string, what: string): Problem {
  return {
    code: 'UnreadableFile',
    subject: path,
    severity: 'error',
    heals: true,
    message: `${what}; what it gave before goes on being used until it can be read`,
  };
}

export function unreadableReason(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'ENOENT':
      return 'does not exist';
    case 'EACCES':
    case 'EPERM':
      return 'may not be read by this user; grant read permission';
    default:
      return `cannot be read: ${errorMessage(error)}`;
  }
}
