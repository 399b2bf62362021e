import type { Problem } from '@weir/model';
import { duplicateProblem, type FileContents, type ManifestObject } from './file-contents.ts';

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
