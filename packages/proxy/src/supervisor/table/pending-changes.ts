import { type Change, entryIdOf, type RoutingTable } from '@weir/model/data-plane';
import type { AppliedRevision } from '@weir/store';

/** Where to go from whatever was taken before; `changes`: the last of each entry, undefined where any may be another. */
export interface PendingTable {
  readonly table: RoutingTable;
  readonly revision: AppliedRevision;
  readonly changes: readonly Change[] | undefined;
}

/**
 * What came while a very large take is under way, as one step: any number of revisions may come. Of each entry only the last state is
 * kept, and no more changes than the table has entries.
 */
export class PendingChanges {
  #latest: Pick<PendingTable, 'table' | 'revision'> | undefined;
  /** By id; undefined: there are too many, or nobody said what they are. */
  #changes: Map<string, Change> | undefined = new Map();

  get isEmpty(): boolean {
    return this.#latest === undefined;
  }

  /** A whole table: what came before does not matter any more. */
  replace(table: RoutingTable, revision: AppliedRevision): void {
    this.#latest = { table, revision };
    this.#changes = undefined;
  }

  /** `table` is the one before with `changes` made. */
  add(changes: readonly Change[], table: RoutingTable, revision: AppliedRevision): void {
    // What waits longest says how late it is.
    const changedAt = this.#latest?.revision.changedAt ?? revision.changedAt;
    this.#latest = { table, revision: changedAt === undefined ? revision : { ...revision, changedAt } };
    for (const change of changes) this.#changes?.set(entryIdOf(change), change);
    if (this.#changes !== undefined && this.#changes.size > table.entries.size) this.#changes = undefined;
  }

  /** Empties it; undefined: it is. */
  take(): PendingTable | undefined {
    if (this.#latest === undefined) return undefined;
    const { table, revision } = this.#latest;
    const changes = this.#changes && [...this.#changes.values()];
    this.#latest = undefined;
    this.#changes = new Map();
    return { table, revision, changes };
  }
}
