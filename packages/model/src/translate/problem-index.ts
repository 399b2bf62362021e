import { isJsonEqual } from '../json-equal.ts';
import type { Problem } from '../problem.ts';
import type { ProblemEntry } from '../table/entry.ts';
import { problemEntries } from './problems.ts';
import type { EntryReplacement } from './table-builder.ts';

/** Every problem of a snapshot, sorted by subject, code and message. What one thing has is put in its place among those of all others. */
export class ProblemIndex<K> {
  readonly #bySource = new Map<K, readonly KeyedProblem[]>();
  /** By subject and code: their entries are numbered. */
  readonly #groups = new Map<string, KeyedProblem[]>();
  readonly #entries = new Map<string, readonly ProblemEntry[]>();
  #sorted: readonly KeyedProblem[] = [];
  #problems: readonly Problem[] = [];
  /** Since the list was last asked for. */
  readonly #added = new Set<KeyedProblem>();
  readonly #removed = new Set<KeyedProblem>();
  /** Keys of groups that are others since the last `renew`. */
  readonly #changed = new Set<string>();

  /** What is wrong with one thing now. */
  set(source: K, problems: readonly Problem[]): void {
    const before = this.#bySource.get(source) ?? [];
    if (before.length === problems.length && before.every(({ problem }, at) => isJsonEqual(problem, problems[at])))
      return;
    const after = problems.map(keyedProblem);
    this.#remove(before);
    for (const each of after) this.#add(each);
    if (after.length === 0) this.#bySource.delete(source);
    else this.#bySource.set(source, after);
  }

  /** The same list until something changes. */
  get all(): readonly Problem[] {
    if (this.#added.size === 0 && this.#removed.size === 0) return this.#problems;
    this.#sorted = mergeSorted(
      this.#sorted.filter((each) => !this.#removed.has(each)),
      [...this.#added].sort(byKey),
    );
    this.#problems = this.#sorted.map(({ problem }) => problem);
    this.#added.clear();
    this.#removed.clear();
    return this.#problems;
  }

  updateEntries(): EntryReplacement[] {
    const replacements = [...this.#changed].map((key) => {
      const before = this.#entries.get(key) ?? [];
      const own = [...(this.#groups.get(key) ?? [])].sort(byKey);
      const after = problemEntries(own.map(({ problem }) => problem));
      if (after.length === 0) this.#entries.delete(key);
      else this.#entries.set(key, after);
      return { before, after };
    });
    this.#changed.clear();
    return replacements;
  }

  #add(each: KeyedProblem): void {
    this.#added.add(each);
    this.#changed.add(each.group);
    const group = this.#groups.get(each.group);
    if (group === undefined) this.#groups.set(each.group, [each]);
    else group.push(each);
  }

  #remove(all: readonly KeyedProblem[]): void {
    const gone = new Set(all);
    for (const each of all) {
      // It may have come since the list was asked for.
      if (!this.#added.delete(each)) this.#removed.add(each);
      this.#changed.add(each.group);
    }
    for (const key of new Set(all.map(({ group }) => group))) {
      const others = (this.#groups.get(key) ?? []).filter((other) => !gone.has(other));
      if (others.length === 0) this.#groups.delete(key);
      else this.#groups.set(key, others);
    }
  }
}

interface KeyedProblem {
  readonly problem: Problem;
  /** Of its subject and code. */
  readonly group: string;
  /** By which all are sorted. */
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

/** Of two sorted lists one. */
function mergeSorted(most: readonly KeyedProblem[], few: readonly KeyedProblem[]): readonly KeyedProblem[] {
  if (few.length === 0) return most;
  const all: KeyedProblem[] = [];
  let at = 0;
  for (const each of few) {
    const from = at;
    at = insertionIndex(each, most, from);
    for (const before of most.slice(from, at)) all.push(before);
    all.push(each);
  }
  for (const rest of most.slice(at)) all.push(rest);
  return all;
}

/** The first place from there on before which it comes. */
function insertionIndex(each: KeyedProblem, sorted: readonly KeyedProblem[], from: number): number {
  let [low, high] = [from, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (byKey(sorted[middle] as KeyedProblem, each) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
