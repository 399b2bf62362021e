import type { Change, RoutingTable } from './table.ts';

/** A new table: `table` with the changes made in their order. Deleting what is not there changes nothing. */
export function apply(table: RoutingTable, changes: readonly Change[]): RoutingTable {
  if (changes.length === 0) return table;
  const entries = new Map(table.entries);
  for (const change of changes) {
    if (change.kind === 'put') entries.set(change.entry.id, change.entry);
    else entries.delete(change.id);
  }
  return { entries };
}
