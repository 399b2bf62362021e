import { hash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Problem } from '@weir/model';
import type { Clock } from '@weir/runtime';
import { type FileContents, parseContents } from './file-contents.ts';
import { type FoundFile, findManifests, unreadableFileProblem, unreadableReason } from './find-manifests.ts';
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
