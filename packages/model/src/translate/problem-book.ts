import type { Problem } from '../problem.ts';
import type { ProblemEntry } from '../table/entry.ts';
import { isSame } from '../table/same.ts';
import { problemEntries } from './problems.ts';
import type { Replacement } from './table-draft.ts';

/** Every problem of a snapshot, sorted by subject, code and message. */
export class ProblemBook<K> {
  readonly #bySource = new Map<K, readonly Problem[]>();
  #problems: readonly Problem[] = [];
  #entries: readonly ProblemEntry[] = [];
  #isStale = false;

  /** What is wrong with one thing now. */
  set(source: K, problems: readonly Problem[]): void {
    if (isSame(this.#bySource.get(source) ?? [], problems)) return;
    this.#isStale = true;
    if (problems.length === 0) this.#bySource.delete(source);
    else this.#bySource.set(source, problems);
  }

  /** The same list until something changes. */
  get all(): readonly Problem[] {
    this.#refresh();
    return this.#problems;
  }

  renew(): Replacement[] {
    if (!this.#isStale) return [];
    const before = this.#entries;
    this.#refresh();
    this.#entries = problemEntries(this.#problems);
    return [{ before, after: this.#entries }];
  }

  #refresh(): void {
    if (!this.#isStale) return;
    this.#isStale = false;
    const keyed = [...this.#bySource.values()].flat().map((problem) => ({ problem, key: sortKey(problem) }));
    keyed.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
    this.#problems = keyed.map(({ problem }) => problem);
  }
}

function sortKey({ subject, code, message }: Problem): string {
  return `${subject}\n${code}\n${message}`;
}
