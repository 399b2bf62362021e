import { isSame } from './same.ts';
import type { Change, RoutingTable } from './table.ts';

/**
 * The changes that make `after` out of `before`, sorted by entry id; empty when they are equal.
 * Law: `apply(before, diff(before, after))` equals `after`.
 */
export function diff(before: RoutingTable, after: RoutingTable): Change[] {
  const changes: Change[] = [];
  for (const entry of after.entries.values()) {
    const old = before.entries.get(entry.id);
    if (old !== entry && !isSame(old, entry)) changes.push({ kind: 'put', entry });
  }
  for (const id of before.entries.keys()) {
    if (!after.entries.has(id)) changes.push({ kind: 'delete', id });
  }
  return changes.sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
}

/** The id of the entry that a change is about. */
export function idOf(change: Change): string {
  return change.kind === 'put' ? change.entry.id : change.id;
}
