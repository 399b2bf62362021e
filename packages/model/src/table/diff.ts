import { possiblyChangedIds } from './entry-map.ts';
import { isJsonEqual } from './same.ts';
import type { Change, RoutingTable } from './table.ts';

/**
 * The changes that make `after` out of `before`, sorted by entry id; empty when they are equal. Of two versions of one history it
 * costs what changed between them.
 * Law: `apply(before, diff(before, after))` equals `after`.
 */
export function diff(before: RoutingTable, after: RoutingTable): Change[] {
  const changes: Change[] = [];
  for (const id of possiblyChangedIds(before.entries, after.entries)) {
    const old = before.entries.get(id);
    const entry = after.entries.get(id);
    if (entry === undefined) {
      if (old !== undefined) changes.push({ kind: 'delete', id });
    } else if (old !== entry && !isJsonEqual(old, entry)) changes.push({ kind: 'put', entry });
  }
  return changes.sort((a, b) => (entryIdOf(a) < entryIdOf(b) ? -1 : 1));
}

/** The id of the entry that a change is about. */
export function entryIdOf(change: Change): string {
  return change.kind === 'put' ? change.entry.id : change.id;
}
