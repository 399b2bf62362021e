import type { Problem } from '../problem.ts';
import type { ProblemEntry } from '../table/entry.ts';
import { isSame } from '../table/same.ts';
import { problemEntries } from './problems.ts';
import type { Replacement } from './table-draft.ts';

/** Every problem of a snapshot, sorted by subject, code and message. What one thing has is put in its place among those of all others. */
export class ProblemBook<K> {
  readonly #bySource = new Map<K, readonly Placed[]>();
  /** By subject and code: their entries are numbered. */
  readonly #groups = new Map<string, Placed[]>();
  readonly #entries = new Map<string, readonly ProblemEntry[]>();
  #sorted: readonly Placed[] = [];
  #problems: readonly Problem[] = [];
  /** Since the list was last asked for. */
  readonly #come = new Set<Placed>();
  readonly #gone = new Set<Placed>();
  /** Keys of groups that are others since the last `renew`. */
  readonly #changed = new Set<string>();

  /** What is wrong with one thing now. */
  set(source: K, problems: readonly Problem[]): void {
    const before = this.#bySource.get(source) ?? [];
    if (before.length === problems.length && before.every(({ problem }, at) => isSame(problem, problems[at]))) return;
    const after = problems.map(placed);
    this.#remove(before);
    for (const each of after) this.#add(each);
    if (after.length === 0) this.#bySource.delete(source);
    else this.#bySource.set(source, after);
  }

  /** The same list until something changes. */
  get all(): readonly Problem[] {
    if (this.#come.size === 0 && this.#gone.size === 0) return this.#problems;
    this.#sorted = merged(
      this.#sorted.filter((each) => !this.#gone.has(each)),
      [...this.#come].sort(byKey),
    );
    this.#problems = this.#sorted.map(({ problem }) => problem);
    this.#come.clear();
    this.#gone.clear();
    return this.#problems;
  }

  renew(): Replacement[] {
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

  #add(each: Placed): void {
    this.#come.add(each);
    this.#changed.add(each.group);
    const group = this.#groups.get(each.group);
    if (group === undefined) this.#groups.set(each.group, [each]);
    else group.push(each);
  }

  #remove(all: readonly Placed[]): void {
    const gone = new Set(all);
    for (const each of all) {
      // It may have come since the list was asked for.
      if (!this.#come.delete(each)) this.#gone.add(each);
      this.#changed.add(each.group);
    }
    for (const key of new Set(all.map(({ group }) => group))) {
      const others = (this.#groups.get(key) ?? []).filter((other) => !gone.has(other));
      if (others.length === 0) this.#groups.delete(key);
      else this.#groups.set(key, others);
    }
  }
}

interface Placed {
  readonly problem: Problem;
  /** Of its subject and code. */
  readonly group: string;
  /** By which all are sorted. */
  readonly key: string;
}

function placed(problem: Problem): Placed {
  const { subject, code, message } = problem;
  const group = `${subject}\n${code}`;
  return { problem, group, key: `${group}\n${message}` };
}

function byKey(a: Placed, b: Placed): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}

/** Of two sorted lists one. */
function merged(most: readonly Placed[], few: readonly Placed[]): readonly Placed[] {
  if (few.length === 0) return most;
  const all: Placed[] = [];
  let at = 0;
  for (const each of few) {
    const from = at;
    at = placeFor(each, most, from);
    for (const before of most.slice(from, at)) all.push(before);
    all.push(each);
  }
  for (const rest of most.slice(at)) all.push(rest);
  return all;
}

/** The first place from there on before which it comes. */
function placeFor(each: Placed, sorted: readonly Placed[], from: number): number {
  let [low, high] = [from, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (byKey(sorted[middle] as Placed, each) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
