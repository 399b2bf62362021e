import type { Problem } from '@weir/model';
import { duplicateProblem, type FileContents, type ManifestObject } from './file-contents.ts';

/** One object before and after an update. `before` is undefined for a new object, `after` for a removed object. */
export interface ObjectChange {
  readonly before: ManifestObject | undefined;
  readonly after: ManifestObject | undefined;
}

const NO_DEFINITIONS: readonly ManifestObject[] = [];

/**
 * Merges files into one object per name. An update costs O(objects in changed files). If several files define an object, the file that
 * provided the object before wins, so a copy made for editing changes nothing. If no file provided the object before, the first file by
 * path wins.
 */
export class MergedFiles {
  #files: ReadonlyMap<string, FileContents> = new Map();
  /** All definitions of each object, in the order of their paths. */
  readonly #definitions = new Map<string, readonly ManifestObject[]>();
  readonly #objects = new Map<string, ManifestObject>();
  /** Keys of the objects that several files define. */
  readonly #duplicateKeys = new Set<string>();

  /** The objects in use, by `Kind namespace/name`. */
  get objects(): ReadonlyMap<string, ManifestObject> {
    return this.#objects;
  }

  /** Returns the problems of all files, in the order of their paths, and then the objects that are defined several times. */
  problems(): Problem[] {
    const paths = [...this.#files.keys()].sort();
    const problems = paths.flatMap((path) => this.#files.get(path)?.problems ?? []);
    for (const key of [...this.#duplicateKeys].sort()) {
      const first = this.#objects.get(key);
      for (const other of this.#definitions.get(key) ?? NO_DEFINITIONS)
        if (first !== undefined && other !== first) problems.push(duplicateProblem(key, first, other));
    }
    return problems;
  }

  /** Returns how many well-formed objects were found of each kind that Weir does not read. */
  ignored(): ReadonlyMap<string, number> {
    const ignored = new Map<string, number>();
    for (const file of this.#files.values())
      for (const [kind, count] of file.ignored) ignored.set(kind, (ignored.get(kind) ?? 0) + count);
    return ignored;
  }

  /** Replaces the files, and returns the objects that changed. A file counts as unchanged if its contents are the same object. */
  update(files: ReadonlyMap<string, FileContents>): readonly ObjectChange[] {
    const before = this.#files;
    this.#files = files;
    const paths = new Set([...before.keys(), ...files.keys()]);
    const changedPaths = new Set([...paths].filter((path) => before.get(path) !== files.get(path)));
    const keys = new Set<string>();
    for (const path of changedPaths)
      for (const file of [before.get(path), files.get(path)])
        for (const key of file?.objects.keys() ?? []) keys.add(key);
    const orderedPaths = [...changedPaths].sort();
    return [...keys].flatMap((key) => {
      const kept = (this.#definitions.get(key) ?? NO_DEFINITIONS).filter(({ path }) => !changedPaths.has(path));
      const added = orderedPaths.flatMap((path) => files.get(path)?.objects.get(key) ?? []);
      return this.#setDefinitions(key, [...kept, ...added].sort(byPath));
    });
  }

  #setDefinitions(key: string, definitions: readonly ManifestObject[]): ObjectChange[] {
    const before = this.#objects.get(key);
    const after = definitions.find(({ path }) => path === before?.path) ?? definitions[0];
    if (definitions.length > 1) this.#duplicateKeys.add(key);
    else this.#duplicateKeys.delete(key);
    if (after === undefined) {
      this.#definitions.delete(key);
      this.#objects.delete(key);
    } else {
      this.#definitions.set(key, definitions);
      this.#objects.set(key, after);
    }
    return before === after ? [] : [{ before, after }];
  }
}

function byPath(a: ManifestObject, b: ManifestObject): number {
  return a.path < b.path ? -1 : a.path > b.path ? 1 : 0;
}
