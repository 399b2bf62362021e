import { type Problem, subjectFor, truncateMessage } from '@weir/model';
import type { ParseResult } from '../../parse/parse-object.ts';
import {
  identityOf,
  type ManifestKind,
  type ManifestParsers,
  type ObjectIdentity,
  type ObjectsByKind,
  recognize,
  withServerDefaults,
} from './manifest-kinds.ts';
import { type Manifest, parseManifests } from './parse-manifests.ts';

/** An object, and where it stands. */
export type ManifestObject = ManifestLocation & ObjectOfKind;

interface ManifestLocation {
  readonly path: string;
  readonly line: number;
}

type ObjectOfKind = { [K in ManifestKind]: { readonly kind: K; readonly object: ObjectsByKind[K] } }[ManifestKind];

/** What a file gives now, by `Kind namespace/name`. */
export interface FileContents {
  readonly objects: ReadonlyMap<string, ManifestObject>;
  readonly problems: readonly Problem[];
  /** Well-formed objects that Weir does not read: how many of each kind. */
  readonly ignored: ReadonlyMap<string, number>;
}

export interface ManifestFile {
  readonly path: string;
  readonly text: string;
}

interface ParseContext {
  readonly projections: ManifestParsers;
  readonly previous?: FileContents | undefined;
}

/**
 * Reads a file's text. An object that was good in `previous` and is invalid now is kept as it was; when it cannot even be told which
 * object a mistake is in, all that are missing are kept: an edit that went wrong takes nothing out of service.
 */
export function parseContents({ path, text }: ManifestFile, { projections, previous }: ParseContext): FileContents {
  const objects = new Map<string, ManifestObject>();
  const problems: Problem[] = [];
  const ignored = new Map<string, number>();
  const kept = new Set<string>();
  let anyMayBeMeant = false;
  for (const manifest of parseManifests(text)) {
    const reading = readManifest(path, manifest, projections);
    problems.push(...reading.problems);
    switch (reading.kind) {
      case 'object': {
        const first = objects.get(reading.key);
        if (first === undefined) objects.set(reading.key, reading.placed);
        else problems.push(duplicateProblem(reading.key, first, reading.placed));
        break;
      }
      case 'invalid':
        if (reading.key === undefined) anyMayBeMeant = true;
        else kept.add(reading.key);
        break;
      case 'ignored':
        if (reading.as !== undefined) ignored.set(reading.as, (ignored.get(reading.as) ?? 0) + 1);
    }
  }
  for (const [key, placed] of previous?.objects ?? []) {
    if (!objects.has(key) && (anyMayBeMeant || kept.has(key))) objects.set(key, placed);
  }
  return { objects, problems, ignored };
}

export function duplicateProblem(key: string, first: ManifestObject, second: ManifestObject): Problem {
  return {
    code: 'DuplicateObject',
    subject: key,
    severity: 'error',
    heals: false,
    message: `stands in ${first.path}:${first.line} and in ${second.path}:${second.line}; the first is used, delete one of them`,
  };
}

type ManifestReading = { readonly problems: readonly Problem[] } & (
  | { readonly kind: 'object'; readonly key: string; readonly placed: ManifestObject }
  | { readonly kind: 'invalid'; readonly key: string | undefined }
  | { readonly kind: 'ignored'; readonly as: string | undefined }
);

function readManifest(path: string, manifest: Manifest, projections: ManifestParsers): ManifestReading {
  const place = `${path}:${manifest.line}`;
  if (manifest.kind === 'unreadable') {
    const problem = problemAt('InvalidDocument', place, manifest.message);
    return { kind: 'invalid', key: undefined, problems: [problem] };
  }
  const { raw } = manifest;
  const [apiVersion, kind] = [String(raw.apiVersion), String(raw.kind)];
  const recognition = recognize(apiVersion, kind);
  switch (recognition.kind) {
    case 'other':
      return { kind: 'ignored', as: kind, problems: [] };
    case 'unknown': {
      const message = `${apiVersion} ${kind} is not known to this version of Weir; use ${recognition.allowed}`;
      return { kind: 'invalid', key: undefined, problems: [problemAt('UnknownKind', place, message)] };
    }
    case 'read': {
      const identity = identityOf(recognition.as, raw);
      const projection = projections[recognition.as]?.(withServerDefaults(identity, raw));
      if (projection === undefined) return { kind: 'ignored', as: kind, problems: [] };
      return readingFor({ kind: recognition.as, identity, projection }, { path, line: manifest.line });
    }
  }
}

interface ParsedManifest {
  readonly kind: ManifestKind;
  readonly identity: ObjectIdentity | undefined;
  readonly projection: ParseResult<ObjectsByKind[ManifestKind]>;
}

function readingFor({ kind, identity, projection }: ParsedManifest, { path, line }: ManifestLocation): ManifestReading {
  const problems = projection.problems.map((each) => ({ ...each, message: `${each.message} (${path}:${line})` }));
  if (identity !== undefined && projection.object !== undefined) {
    const placed = Object.freeze({ kind, object: projection.object, path, line }) as ManifestObject;
    return { kind: 'object', key: keyOf(identity), placed, problems };
  }
  // A slice that names no Service any more was taken out, not broken.
  if (!problems.some((each) => each.severity === 'error')) return { kind: 'ignored', as: undefined, problems };
  return { kind: 'invalid', key: identity === undefined ? undefined : keyOf(identity), problems };
}

function keyOf({ kind, ...object }: ObjectIdentity): string {
  return subjectFor(kind, object);
}

function problemAt(code: 'InvalidDocument' | 'UnknownKind', subject: string, message: string): Problem {
  return Object.freeze({ code, subject, severity: 'error', heals: false, message: truncateMessage(message) });
}

/** What all files give together. */
export interface MergedContents {
  readonly objects: ReadonlyMap<string, ManifestObject>;
  readonly problems: readonly Problem[];
  readonly ignored: ReadonlyMap<string, number>;
}

/**
 * One object per name. When two files hold the same one, the file that had it before keeps it (a copy made to be edited takes nothing
 * over), else the first by path.
 */
export function mergeContents(
  files: ReadonlyMap<string, FileContents>,
  previous: MergedContents | undefined,
): MergedContents {
  const candidates = new Map<string, ManifestObject[]>();
  const problems: Problem[] = [];
  const ignored = new Map<string, number>();
  for (const path of [...files.keys()].sort()) {
    const file = files.get(path) as FileContents;
    problems.push(...file.problems);
    for (const [key, placed] of file.objects) candidates.set(key, [...(candidates.get(key) ?? []), placed]);
    for (const [kind, count] of file.ignored) ignored.set(kind, (ignored.get(kind) ?? 0) + count);
  }
  const objects = new Map<string, ManifestObject>();
  for (const [key, placed] of candidates) {
    const owner = previous?.objects.get(key)?.path;
    const first = placed.find((each) => each.path === owner) ?? (placed[0] as ManifestObject);
    objects.set(key, first);
    for (const other of placed) if (other !== first) problems.push(duplicateProblem(key, first, other));
  }
  return { objects, problems, ignored };
}
