import { EntryMap } from './entry-map.ts';
import type { Change, RoutingTable } from './table.ts';

/**
 * A new table: `table` with the changes made in their order. Deleting what is not there changes nothing. Costs what the changes
 * cost when `table` was made so itself, and is the newest of its history; else a copy.
 */
export function apply(table: RoutingTable, changes: readonly Change[]): RoutingTable {
  return changes.length === 0 ? table : { entries: EntryMap.of(table.entries).with(changes) };
}
