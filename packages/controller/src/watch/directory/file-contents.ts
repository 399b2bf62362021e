import { type Problem, subjectFor, truncateMessage } from '@weir/model';
import type { ParseResult } from '../../parse/parse-object.ts';
import { withFieldChecks } from './known-fields.ts';
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

/** An object with the file and line where it begins. */
export type ManifestObject = ManifestLocation & ObjectOfKind;

interface ManifestLocation {
  readonly path: string;
  readonly line: number;
}

type ObjectOfKind = { [K in ManifestKind]: { readonly kind: K; readonly object: ObjectsByKind[K] } }[ManifestKind];

/** The objects and problems of one file. */
export interface FileContents {
  /** The objects by `Kind namespace/name`. */
  readonly objects: ReadonlyMap<string, ManifestObject>;
  readonly problems: readonly Problem[];
  /** How many well-formed objects were found of each kind that Weir does not read. */
  readonly ignored: ReadonlyMap<string, number>;
}

export interface ManifestFile {
  readonly path: string;
  readonly text: string;
}

interface ParseContext {
  readonly parsers: ManifestParsers;
  readonly previous?: FileContents | undefined;
}

/**
 * Parses the text of a file. A mistake in an edit does not stop a Service, because an object that is invalid now keeps its version in
 * `previous`. If a mistake cannot be attributed to an object, all objects of `previous` that are missing now are kept.
 */
export function parseContents({ path, text }: ManifestFile, { parsers, previous }: ParseContext): FileContents {
  const objects = new Map<string, ManifestObject>();
  const problems: Problem[] = [];
  const ignored = new Map<string, number>();
  const invalidKeys = new Set<string>();
  let hasUnidentifiedMistake = false;
  for (const manifest of parseManifests(text)) {
    const reading = readManifest(path, manifest, parsers);
    problems.push(...reading.problems);
    switch (reading.kind) {
      case 'object': {
        const first = objects.get(reading.key);
        if (first === undefined) objects.set(reading.key, reading.object);
        else problems.push(duplicateProblem(reading.key, first, reading.object));
        break;
      }
      case 'invalid':
        if (reading.key === undefined) hasUnidentifiedMistake = true;
        else invalidKeys.add(reading.key);
        break;
      case 'ignored':
        if (reading.countAs !== undefined) ignored.set(reading.countAs, (ignored.get(reading.countAs) ?? 0) + 1);
    }
  }
  for (const [key, object] of previous?.objects ?? []) {
    if (!objects.has(key) && (hasUnidentifiedMistake || invalidKeys.has(key))) objects.set(key, object);
  }
  return { objects, problems, ignored };
}

export function duplicateProblem(key: string, first: ManifestObject, second: ManifestObject): Problem {
  return {
    code: 'DuplicateObject',
    subject: key,
    severity: 'error',
    heals: false,
    message: `is defined in ${first.path}:${first.line} and in ${second.path}:${second.line}; the first definition is used; delete one of the two`,
  };
}

type ManifestReading = { readonly problems: readonly Problem[] } & (
  | { readonly kind: 'object'; readonly key: string; readonly object: ManifestObject }
  | { readonly kind: 'invalid'; readonly key: string | undefined }
  /** `countAs` is undefined for an object that is not reported as ignored. */
  | { readonly kind: 'ignored'; readonly countAs: string | undefined }
);

function readManifest(path: string, manifest: Manifest, parsers: ManifestParsers): ManifestReading {
  const place = `${path}:${manifest.line}`;
  if (manifest.kind === 'unreadable') {
    const problem = problemAt('InvalidDocument', place, manifest.message);
    return { kind: 'invalid', key: undefined, problems: [problem] };
  }
  const { raw } = manifest;
  const [apiVersion, kind] = [String(raw.apiVersion), String(raw.kind)];
  const recognition = recognize(apiVersion, kind);
  switch (recognition.kind) {
    case 'ignored':
      return { kind: 'ignored', countAs: kind, problems: [] };
    case 'unknown': {
      const message = `this version of Weir does not know ${apiVersion} ${kind}; use ${recognition.allowed}`;
      return { kind: 'invalid', key: undefined, problems: [problemAt('UnknownKind', place, message)] };
    }
    case 'supported': {
      const identity = identityOf(recognition.manifestKind, raw);
      const parsed = parsers[recognition.manifestKind]?.(withServerDefaults(identity, raw));
      if (parsed === undefined) return { kind: 'ignored', countAs: kind, problems: [] };
      const result = identity === undefined ? parsed : withFieldChecks(identity, raw, parsed);
      return readingFor({ kind: recognition.manifestKind, identity, result }, { path, line: manifest.line });
    }
  }
}

interface ParsedManifest {
  readonly kind: ManifestKind;
  readonly identity: ObjectIdentity | undefined;
  readonly result: ParseResult<ObjectsByKind[ManifestKind]>;
}

function readingFor({ kind, identity, result }: ParsedManifest, { path, line }: ManifestLocation): ManifestReading {
  const problems = result.problems.map((each) => ({ ...each, message: `${each.message} (${path}:${line})` }));
  if (identity !== undefined && result.object !== undefined) {
    const object = Object.freeze({ kind, object: result.object, path, line }) as ManifestObject;
    return { kind: 'object', key: keyOf(identity), object, problems };
  }
  // If there is no error, the object is a slice that no longer names a Service, so the slice is dropped.
  if (!problems.some((each) => each.severity === 'error')) return { kind: 'ignored', countAs: undefined, problems };
  return { kind: 'invalid', key: identity === undefined ? undefined : keyOf(identity), problems };
}

function keyOf({ kind, ...object }: ObjectIdentity): string {
  return subjectFor(kind, object);
}

function problemAt(code: 'InvalidDocument' | 'UnknownKind', subject: string, message: string): Problem {
  return Object.freeze({ code, subject, severity: 'error', heals: false, message: truncateMessage(message) });
}
