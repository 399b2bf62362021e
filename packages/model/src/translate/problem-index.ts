import { isJsonEqual } from '../json-equal.ts';
import { mergeSorted } from '../list-merge.ts';
import type { Problem } from '../problem.ts';
import type { ProblemEntry } from '../table/entry.ts';
import { problemEntries } from './problems.ts';
import type { EntryReplacement } from './table-builder.ts';

/** All problems of a snapshot, sorted by subject, code and message. A change of one source does not sort all problems again. */
export class ProblemIndex<K> {
  readonly #bySource = new Map<K, readonly KeyedProblem[]>();
  /** By subject and code: the entries of one group are numbered. */
  readonly #groups = new Map<string, KeyedProblem[]>();
  readonly #entries = new Map<string, readonly ProblemEntry[]>();
  #sorted: readonly KeyedProblem[] = [];
  #problems: readonly Problem[] = [];
  /** Changes since `all` was read last. */
  readonly #added = new Set<KeyedProblem>();
  readonly #removed = new Set<KeyedProblem>();
  /** Keys of the groups that changed since the last `updateEntries`. */
  readonly #changedGroups = new Set<string>();

  /** Replaces the problems of one source. */
  set(source: K, problems: readonly Problem[]): void {
    const before = this.#bySource.get(source) ?? [];
    if (before.length === problems.length && before.every(({ problem }, i) => isJsonEqual(problem, problems[i])))
      return;
    const after = problems.map(keyedProblem);
    this.#remove(before);
    for (const keyed of after) this.#add(keyed);
    if (after.length === 0) this.#bySource.delete(source);
    else this.#bySource.set(source, after);
  }

  /** Returns the same list until a problem changes. */
  get all(): readonly Problem[] {
    if (this.#added.size === 0 && this.#removed.size === 0) return this.#problems;
    const kept = this.#sorted.filter((keyed) => !this.#removed.has(keyed));
    this.#sorted = mergeSorted(kept, [...this.#added], byKey);
    this.#problems = this.#sorted.map(({ problem }) => problem);
    this.#added.clear();
    this.#removed.clear();
    return this.#problems;
  }

  /** Returns the table entries of the groups that changed since the last call. */
  updateEntries(): EntryReplacement[] {
    const replacements = [...this.#changedGroups].map((key) => {
      const before = this.#entries.get(key) ?? [];
      const group = [...(this.#groups.get(key) ?? [])].sort(byKey);
      const after = problemEntries(group.map(({ problem }) => problem));
      if (after.length === 0) this.#entries.delete(key);
      else this.#entries.set(key, after);
      return { before, after };
    });
    this.#changedGroups.clear();
    return replacements;
  }

  #add(keyed: KeyedProblem): void {
    this.#added.add(keyed);
    this.#changedGroups.add(keyed.group);
    const group = this.#groups.get(keyed.group);
    if (group === undefined) this.#groups.set(keyed.group, [keyed]);
    else group.push(keyed);
  }

  #remove(problems: readonly KeyedProblem[]): void {
    const removed = new Set(problems);
    for (const keyed of problems) {
      // A problem that was added after `all` was read last is not in the sorted list yet.
      if (!this.#added.delete(keyed)) this.#removed.add(keyed);
      this.#changedGroups.add(keyed.group);
    }
    for (const key of new Set(problems.map(({ group }) => group))) {
      const rest = (this.#groups.get(key) ?? []).filter((keyed) => !removed.has(keyed));
      if (rest.length === 0) this.#groups.delete(key);
      else this.#groups.set(key, rest);
    }
  }
}

interface KeyedProblem {
  readonly problem: Problem;
  /** Subject and code. */
  readonly group: string;
  /** The sort key: subject, code and message. */
  readonly key: string;
}

function keyedProblem(problem: Problem): KeyedProblem {
  const { subject, code, message } = problem;
  const group = `${subject}\n${code}`;
  return { problem, group, key: `${group}\n${message}` };
}

function byKey(a: KeyedProblem, b: KeyedProblem): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}
