import type { Entry } from './entry.ts';

/** The routing table: entries by id. A value: changed only by `apply`, which returns a new one. */
export interface RoutingTable {
  readonly entries: ReadonlyMap<string, Entry>;
}

/** An entry put in place of the one with its id, or an id gone. */
export type Change = { readonly kind: 'put'; readonly entry: Entry } | { readonly kind: 'delete'; readonly id: string };

export const EMPTY_TABLE: RoutingTable = { entries: new Map() };

/** The table that holds the given entries; two of one id: a broken invariant, thrown. */
export function tableOf(entries: Iterable<Entry>): RoutingTable {
  const byId = new Map<string, Entry>();
  for (const entry of entries) {
    if (byId.has(entry.id)) throw new Error(`two entries of the table have the id ${entry.id}`);
    byId.set(entry.id, entry);
  }
  return { entries: byId };
}

type Kind = Entry['kind'];
type EntryOf<K extends Kind> = Extract<Entry, { kind: K }>;

/** The entries of one kind, in the order of the table. */
export function entriesOf<K extends Kind>(table: RoutingTable, kind: K): EntryOf<K>[] {
  const found: EntryOf<K>[] = [];
  for (const entry of table.entries.values()) if (entry.kind === kind) found.push(entry as EntryOf<K>);
  return found;
}

/** The table as `weir translate -o json` prints it: lists by kind, each sorted by id, without keys. Problems stand beside it. */
export function tableToJson(table: RoutingTable): {
  nodes: EntryOf<'node'>[];
  tenants: EntryOf<'tenant'>[];
  services: EntryOf<'service'>[];
  certificates: EntryOf<'certificate'>[];
  listeners: EntryOf<'listener'>[];
  endpoints: EntryOf<'endpoints'>[];
} {
  const sorted = <K extends Kind>(kind: K): EntryOf<K>[] =>
    entriesOf(table, kind).sort((a, b) => (a.id < b.id ? -1 : 1));
  return {
    nodes: sorted('node'),
    tenants: sorted('tenant'),
    services: sorted('service'),
    certificates: sorted('certificate').map(({ sealedKey: _sealedKey, ...certificate }) => certificate),
    listeners: sorted('listener'),
    endpoints: sorted('endpoints'),
  };
}
