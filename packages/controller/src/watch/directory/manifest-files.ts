import { hash } from 'node:crypto';
import type { BigIntStats, Dirent } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Problem } from '@weir/model';
import { type Clock, errorMessage } from '@weir/runtime';
import { type FileContents, parseContents } from './file-contents.ts';
import type { ManifestParsers } from './manifest-kinds.ts';

interface CachedFile {
  /** Of its text, which itself is not kept: there may be private keys in it. */
  readonly digest: string;
  readonly contents: FileContents;
  /** Empty: to be read again, whatever its stats say. */
  readonly fingerprint: string;
  /** Since when it is gone or empty, on the clock that never jumps. */
  readonly missingSince: number | null;
}

/** The files as they were found at one look. */
export interface ManifestScan {
  readonly contents: ReadonlyMap<string, FileContents>;
  readonly problems: readonly Problem[];
  readonly directories: readonly string[];
  /** Something is missing that may only be on its way back: look again after this time. */
  readonly rescanInMs: number | null;
}

/** How long a file may be gone or empty before its objects are: editors move the old one away, or truncate, before they write. */
const SETTLE_MS = 150;
/** Two writes within one tick of the file system's clock have one time: a file this fresh is not known by its stats. */
const MIN_STABLE_AGE_MS = 1_000;
const MAX_FILE_BYTES = 64 * 1024 * 1024;

export interface ManifestFilesOptions {
  readonly paths: readonly string[];
  readonly clock: Clock;
  readonly projections: ManifestParsers;
}

/** The manifests under some paths; each look reads only what changed. */
export class ManifestFiles {
  readonly #paths: readonly string[];
  readonly #clock: Clock;
  readonly #projections: ManifestParsers;
  #cachedFiles: ReadonlyMap<string, CachedFile> = new Map();

  constructor({ paths, clock, projections }: ManifestFilesOptions) {
    this.#paths = paths;
    this.#clock = clock;
    this.#projections = projections;
  }

  async scan(): Promise<ManifestScan> {
    const found = await findManifests(this.#paths);
    const problems: Problem[] = [...found.problems];
    const known = new Map<string, CachedFile>();
    for (const file of found.files) {
      const reading = await this.#read(file);
      if (reading.problem !== undefined) problems.push(reading.problem);
      if (reading.known !== undefined) known.set(file.path, reading.known);
    }
    for (const [path, before] of this.#cachedFiles) {
      if (known.has(path)) continue;
      if (found.unreadable.some((each) => path === each || path.startsWith(`${each}/`))) known.set(path, before);
      else this.#keepUntilSettled(known, path, before);
    }
    this.#cachedFiles = known;
    return {
      contents: new Map([...known].map(([path, each]) => [path, each.contents])),
      problems,
      directories: found.directories,
      rescanInMs: [...known.values()].some((each) => each.missingSince !== null) ? SETTLE_MS : null,
    };
  }

  async #read({
    path,
    stats,
  }: FoundFile): Promise<{ readonly known?: CachedFile | undefined; readonly problem?: Problem }> {
    const before = this.#cachedFiles.get(path);
    const fingerprint = this.#fingerprintFor(stats);
    if (before !== undefined && before.fingerprint !== '' && before.fingerprint === fingerprint)
      return { known: before };
    if (stats.size > MAX_FILE_BYTES) {
      return {
        known: before,
        problem: unreadableFileProblem(path, `is larger than ${MAX_FILE_BYTES / 1024 / 1024} MiB; split it`),
      };
    }
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => error);
    if (text instanceof Error) {
      if (text.code === 'ENOENT') return {};
      return { known: before, problem: unreadableFileProblem(path, unreadableReason(text)) };
    }
    if (before !== undefined && text.trim() === '' && before.contents.objects.size > 0) {
      const missingSince = before.missingSince ?? this.#clock.monotonic();
      if (this.#clock.monotonic() - missingSince < SETTLE_MS)
        return { known: { ...before, fingerprint: '', missingSince } };
    }
    const digest = hash('sha256', text);
    const contents =
      digest === before?.digest
        ? before.contents
        : parseContents({ path, text }, { projections: this.#projections, previous: before?.contents });
    return { known: { digest, contents, fingerprint, missingSince: null } };
  }

  #keepUntilSettled(known: Map<string, CachedFile>, path: string, before: CachedFile): void {
    const missingSince = before.missingSince ?? this.#clock.monotonic();
    if (before.contents.objects.size === 0 || this.#clock.monotonic() - missingSince >= SETTLE_MS) return;
    known.set(path, { ...before, fingerprint: '', missingSince });
  }

  #fingerprintFor({ dev, ino, size, mtimeNs, ctimeMs, ctimeNs }: BigIntStats): string {
    const isFresh = this.#clock.now() - Number(ctimeMs) < MIN_STABLE_AGE_MS;
    return isFresh ? '' : [dev, ino, size, mtimeNs, ctimeNs].join(':');
  }
}

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
