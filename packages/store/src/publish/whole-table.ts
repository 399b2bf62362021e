import {
  type Change,
  diff,
  EMPTY_TABLE,
  type Entry,
  type RoutingTable,
  type ServiceEntry,
} from '@weir/model/data-plane';

/**
 * The changes that make the table out of nothing, each Service followed by its certificate and listeners before anything else. Whoever leads after one
 * that ended on the way goes by what lies there: so it knows at least for a part of the Services where they are and what they
 * serve by, where by the order of ids it would know nothing until nearly all was written.
 */
export function changesForCompleteTable(table: RoutingTable): readonly Change[] {
  const holders = new Map<string, Change[]>();
  const others: Change[] = [];
  const changes = diff(EMPTY_TABLE, table);
  for (const change of changes) {
    const entry = entryOf(change);
    if (hasSettings(entry)) holders.set(entry.uid, [change]);
  }
  for (const change of changes) {
    const entry = entryOf(change);
    if (hasSettings(entry)) continue;
    const isHeld = entry?.kind === 'listener' || entry?.kind === 'certificate';
    const holder = isHeld ? holders.get(entry.service) : undefined;
    (holder ?? others).push(change);
  }
  return [...[...holders.values()].flat(), ...others];
}

function hasSettings(entry: Entry | undefined): entry is ServiceEntry {
  return entry?.kind === 'service' && entry.settings !== null;
}

function entryOf(change: Change): Entry | undefined {
  return change.kind === 'put' ? change.entry : undefined;
}
