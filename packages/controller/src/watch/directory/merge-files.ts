import type { Problem } from '@weir/model';
import { duplicate, type FileContents, type Placed } from './file-contents.ts';

/** What all files give together. */
export interface Merged {
  readonly objects: ReadonlyMap<string, Placed>;
  readonly problems: readonly Problem[];
  readonly ignored: ReadonlyMap<string, number>;
}

/**
 * One object per name. When two files hold the same one, the file that had it before keeps it (a copy made to be edited takes nothing
 * over), else the first by path.
 */
export function mergeFiles(files: ReadonlyMap<string, FileContents>, previous: Merged | undefined): Merged {
  const candidates = new Map<string, Placed[]>();
  const problems: Problem[] = [];
  const ignored = new Map<string, number>();
  for (const path of [...files.keys()].sort()) {
    const file = files.get(path) as FileContents;
    problems.push(...file.problems);
    for (const [key, placed] of file.objects) candidates.set(key, [...(candidates.get(key) ?? []), placed]);
    for (const [kind, count] of file.ignored) ignored.set(kind, (ignored.get(kind) ?? 0) + count);
  }
  const objects = new Map<string, Placed>();
  for (const [key, placed] of candidates) {
    const owner = previous?.objects.get(key)?.path;
    const first = placed.find((each) => each.path === owner) ?? (placed[0] as Placed);
    objects.set(key, first);
    for (const other of placed) if (other !== first) problems.push(duplicate(key, first, other));
  }
  return { objects, problems, ignored };
}
