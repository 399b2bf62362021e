import { apply } from '../table/apply.ts';
import type { Entry } from '../table/entry.ts';
import { isJsonEqual } from '../table/same.ts';
import { type Change, EMPTY_TABLE, type RoutingTable } from '../table/table.ts';

/** The entries of one source, before and now. */
export interface EntryReplacement {
  readonly before: readonly Entry[];
  readonly after: readonly Entry[];
}

/** A routing table that is changed in few places. Entries that say the same stay the same objects. */
export class TableBuilder {
  #table: RoutingTable = EMPTY_TABLE;

  /** The same object until something changes. */
  get table(): RoutingTable {
    return this.#table;
  }

  /** All together, since an id may go from one source to another. Throws when two have the same. */
  replace(replacements: readonly EntryReplacement[]): void {
    const gone = new Map<string, Entry>();
    for (const { before } of replacements) for (const entry of before) gone.set(entry.id, entry);
    const come = new Map<string, Entry>();
    for (const { after } of replacements) {
      for (const entry of after) {
        const isTwice = come.has(entry.id) || (!gone.has(entry.id) && this.#table.entries.has(entry.id));
        if (isTwice) throw new Error(`two entries of the table have the id ${entry.id}`);
        come.set(entry.id, entry);
      }
    }
    const changed = [...come.values()].filter((entry) => !isJsonEqual(gone.get(entry.id), entry));
    const left = [...gone.keys()].filter((id) => !come.has(id));
    if (changed.length === 0 && left.length === 0) return;
    this.#table = apply(this.#table, [
      ...left.map((id): Change => ({ kind: 'delete', id })),
      ...changed.map((entry): Change => ({ kind: 'put', entry })),
    ]);
  }
}
