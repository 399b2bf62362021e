import { hash } from 'node:crypto';
import type { BigIntStats, Dirent } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Problem } from '@weir/model';
import { type Clock, errorMessage } from '@weir/runtime';
import { type FileContents, parseContents } from './file-contents.ts';
import type { ManifestParsers } from './manifest-kinds.ts';

interface CachedFile {
  /** SHA-256 of the text. The text is not kept, because it may contain private keys. */
  readonly digest: string;
  readonly contents: FileContents;
  /** A text derived from the file's stats. Empty if the file must be read again in any case. */
  readonly fingerprint: string;
  /** When the file became missing or empty, in milliseconds of the monotonic clock. Null if the file is present and not empty. */
  readonly missingSince: number | null;
}

interface FileReading {
  /** Undefined if the file is gone. */
  readonly cachedFile?: CachedFile | undefined;
  readonly problem?: Problem;
}

/** The result of one scan. */
export interface ManifestScan {
  readonly contents: ReadonlyMap<string, FileContents>;
  readonly problems: readonly Problem[];
  readonly directories: readonly string[];
  /** After how many milliseconds to scan again, because a missing or empty file may come back. Null if no file is missing or empty. */
  readonly rescanInMs: number | null;
}

/** How long the objects of a missing or empty file are kept, because editors move or truncate a file before they write the new version. */
const MISSING_GRACE_MS = 150;
/**
 * If a file was changed less than this time before a scan, the next scan reads the file again even if its stats are unchanged. Two writes
 * within one tick of the file system's clock get the same time, so the stats may not show the second write.
 */
const MIN_STABLE_AGE_MS = 1_000;
const MAX_FILE_BYTES = 64 * 1024 * 1024;

export interface ManifestFilesOptions {
  readonly paths: readonly string[];
  readonly clock: Clock;
  readonly parsers: ManifestParsers;
  /** The manifests of `-f -`; undefined if standard input is not read. */
  readonly stdin?: string | undefined;
}

/** The path of standard input in messages. */
export const STDIN_NAME = 'standard input';

/** Reads the manifests under some paths. Each scan reads only the files that changed. */
export class ManifestFiles {
  readonly #paths: readonly string[];
  readonly #clock: Clock;
  readonly #parsers: ManifestParsers;
  /** The contents of standard input, which never change; empty if standard input is not read. */
  readonly #stdin: ReadonlyMap<string, FileContents>;
  #cachedFiles: ReadonlyMap<string, CachedFile> = new Map();

  constructor({ paths, clock, parsers, stdin }: ManifestFilesOptions) {
    this.#paths = paths;
    this.#clock = clock;
    this.#parsers = parsers;
    this.#stdin = new Map(
      stdin === undefined ? [] : [[STDIN_NAME, parseContents({ path: STDIN_NAME, text: stdin }, { parsers })]],
    );
  }

  async scan(): Promise<ManifestScan> {
    const found = await findManifests(this.#paths);
    const problems: Problem[] = [...found.problems];
    const cachedFiles = new Map<string, CachedFile>();
    for (const file of found.files) {
      const { cachedFile, problem } = await this.#read(file);
      if (problem !== undefined) problems.push(problem);
      if (cachedFile !== undefined) cachedFiles.set(file.path, cachedFile);
    }
    for (const [path, before] of this.#cachedFiles) {
      if (cachedFiles.has(path)) continue;
      if (found.unreadable.some((each) => path === each || path.startsWith(`${each}/`))) cachedFiles.set(path, before);
      else this.#keepDuringGrace(cachedFiles, path, before);
    }
    this.#cachedFiles = cachedFiles;
    return {
      contents: new Map([...this.#stdin, ...[...cachedFiles].map(([path, each]) => [path, each.contents] as const)]),
      problems,
      directories: found.directories,
      rescanInMs: [...cachedFiles.values()].some((each) => each.missingSince !== null) ? MISSING_GRACE_MS : null,
    };
  }

  async #read({ path, stats }: FoundFile): Promise<FileReading> {
    const before = this.#cachedFiles.get(path);
    const fingerprint = this.#fingerprintFor(stats);
    if (before !== undefined && before.fingerprint !== '' && before.fingerprint === fingerprint)
      return { cachedFile: before };
    if (stats.size > MAX_FILE_BYTES) {
      return {
        cachedFile: before,
        problem: unreadableFileProblem(path, `is larger than ${MAX_FILE_BYTES / 1024 / 1024} MiB; split it`),
      };
    }
    const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => error);
    if (text instanceof Error) {
      if (text.code === 'ENOENT') return {};
      return { cachedFile: before, problem: unreadableFileProblem(path, unreadableReason(text)) };
    }
    if (before !== undefined && text.trim() === '' && before.contents.objects.size > 0) {
      const missingSince = before.missingSince ?? this.#clock.monotonic();
      if (this.#clock.monotonic() - missingSince < MISSING_GRACE_MS)
        return { cachedFile: { ...before, fingerprint: '', missingSince } };
    }
    const digest = hash('sha256', text);
    const contents =
      digest === before?.digest
        ? before.contents
        : parseContents({ path, text }, { parsers: this.#parsers, previous: before?.contents });
    return { cachedFile: { digest, contents, fingerprint, missingSince: null } };
  }

  #keepDuringGrace(cachedFiles: Map<string, CachedFile>, path: string, before: CachedFile): void {
    const missingSince = before.missingSince ?? this.#clock.monotonic();
    if (before.contents.objects.size === 0 || this.#clock.monotonic() - missingSince >= MISSING_GRACE_MS) return;
    cachedFiles.set(path, { ...before, fingerprint: '', missingSince });
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

/** The files and directories under the given paths. */
export interface FoundManifests {
  readonly files: readonly FoundFile[];
  readonly directories: readonly string[];
  /** Paths that could not be read. Known files below such a path count as unchanged, not as deleted. */
  readonly unreadable: readonly string[];
  readonly problems: readonly Problem[];
}

const MANIFEST_NAME = /\.(?:ya?ml|json)$/i;

/**
 * Finds the files that `paths` name, whatever their extension, and all manifests in the directories that `paths` name, at any depth.
 * Within directories, skips names with a leading dot, because editors keep drafts and a mounted ConfigMap keeps its versions under
 * such names.
 */
export async function findManifests(paths: readonly string[]): Promise<FoundManifests> {
  const found = {
    files: [] as FoundFile[],
    directories: [] as string[],
    unreadable: [] as string[],
    problems: [] as Problem[],
  };
  const seen = new Set<string>();
  const addUnreadable = (path: string, reason: string): void => {
    found.unreadable.push(path);
    found.problems.push(unreadableFileProblem(path, reason));
  };
  const visit = async (path: string, isRoot: boolean): Promise<void> => {
    const stats = await stat(path, { bigint: true }).catch((error: NodeJS.ErrnoException) => error);
    if (stats instanceof Error) {
      // ENOENT is a dangling link, or a file that was deleted after the directory was listed.
      if (isRoot || stats.code !== 'ENOENT') addUnreadable(path, unreadableReason(stats));
      return;
    }
    // Skips a file or directory that was already visited, because of a circular link or a second path.
    const id = `${stats.dev}:${stats.ino}`;
    if (seen.has(id)) return;
    seen.add(id);
    if (stats.isDirectory()) {
      found.directories.push(path);
      const entries = await readdir(path, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => error);
      if (entries instanceof Error) return addUnreadable(path, unreadableReason(entries));
      for (const entry of entries.filter(isCandidate)) await visit(join(path, entry.name), false);
    } else if (stats.isFile()) {
      found.files.push({ path, stats });
    } else if (isRoot) {
      addUnreadable(path, 'is neither a file nor a directory');
    }
  };
  for (const path of paths) await visit(path, true);
  return found;
}

function isCandidate(entry: Dirent): boolean {
  if (entry.name.startsWith('.')) return false;
  return entry.isDirectory() || entry.isSymbolicLink() || (entry.isFile() && MANIFEST_NAME.test(entry.name));
}

export function unreadableFileProblem(path: string, reason: string): Problem {
  return {
    code: 'UnreadableFile',
    subject: path,
    severity: 'error',
    heals: true,
    message: `${reason}; the objects last read from this path stay in use until the path can be read again`,
  };
}

export function unreadableReason(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'ENOENT':
      return 'does not exist';
    case 'EACCES':
    case 'EPERM':
      return 'is not readable for this user; grant read permission';
    default:
      return `cannot be read: ${errorMessage(error)}`;
  }
}
