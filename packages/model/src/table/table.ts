import { isJsonEqual } from '../compare.ts';
import type { Entry } from './entry.ts';

/** The routing table: entries by id. An immutable value; `apply` returns a changed table. */
export interface RoutingTable {
  readonly entries: ReadonlyMap<string, Entry>;
}

/** Adds or replaces an entry (`put`), or removes the entry with an id (`delete`). */
export type Change = { readonly kind: 'put'; readonly entry: Entry } | { readonly kind: 'delete'; readonly id: string };
export const EMPTY_TABLE: RoutingTable = { entries: new Map() };

/** Returns the table of the given entries. Throws if two entries have the same id. */
export function tableOf(entries: Iterable<Entry>): RoutingTable {
  const byId = new Map<string, Entry>();
  for (const entry of entries) {
    if (byId.has(entry.id)) throw new Error(`invalid table: two entries have the id ${entry.id}`);
    byId.set(entry.id, entry);
  }
  return { entries: byId };
}

type Kind = Entry['kind'];
type EntryOf<K extends Kind> = Extract<Entry, { kind: K }>;

/** Returns the entries of one kind, in the order of the table. */
export function entriesOf<K extends Kind>(table: RoutingTable, kind: K): EntryOf<K>[] {
  const found: EntryOf<K>[] = [];
  const all = table.entries instanceof EntryMap ? table.entries.current() : table.entries;
  for (const entry of all.values()) if (entry.kind === kind) found.push(entry as EntryOf<K>);
  return found;
}

/** Returns the table for `weir translate -o json`: a list for each kind, sorted by id, without private keys and without problems. */
export function tableToJson(table: RoutingTable): {
  nodes: EntryOf<'node'>[];
  tenants: EntryOf<'tenant'>[];
  services: EntryOf<'service'>[];
  certificates: EntryOf<'certificate'>[];
  /** Absent if no Service has error pages. */
  errorPages?: EntryOf<'error-pages'>[];
  listeners: EntryOf<'listener'>[];
  /** Absent if there are none. */
  httpRoutes?: EntryOf<'http-route'>[];
  endpoints: EntryOf<'endpoints'>[];
} {
  const sorted = <K extends Kind>(kind: K): EntryOf<K>[] =>
    entriesOf(table, kind).sort((a, b) => (a.id < b.id ? -1 : 1));
  const errorPages = sorted('error-pages');
  const httpRoutes = sorted('http-route');
  return {
    nodes: sorted('node'),
    tenants: sorted('tenant'),
    services: sorted('service'),
    certificates: sorted('certificate').map(({ sealedKey: _sealedKey, ...certificate }) => certificate),
    ...(errorPages.length > 0 && { errorPages }),
    listeners: sorted('listener'),
    ...(httpRoutes.length > 0 && { httpRoutes }),
    endpoints: sorted('endpoints'),
  };
}

/**
 * Returns the changes that lead from `before` to `after`, sorted by entry id; empty if the tables are equal. Costs O(changes) if `apply`
 * derived one table from the other, otherwise O(size of the tables). Invariant: `apply(before, diff(before, after))` equals `after`.
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

/** Returns the id of the entry that a change puts or deletes. */
export function entryIdOf(change: Change): string {
  return change.kind === 'put' ? change.entry.id : change.id;
}

/**
 * Returns the table with the changes applied in order; deleting an unknown id has no effect. Costs O(changes) if `table` is the newest
 * result of `apply`; otherwise copies the table.
 */
export function apply(table: RoutingTable, changes: readonly Change[]): RoutingTable {
  return changes.length === 0 ? table : { entries: EntryMap.of(table.entries).with(changes) };
}

// One version of a persistent map: a change costs O(change) and leaves the old version intact. Only the newest version holds a real map. An
// older version holds the entries in which it differs from the next version (H. Baker, "Shallow Binding Makes Functional Arrays Fast",
// 1991).
type Version =
  | { readonly kind: 'newest'; readonly entries: Map<string, Entry> }
  /** `was`: by id, the entries of this version that are different in `newer`; undefined for an id without an entry in this version. */
  | { readonly kind: 'older'; readonly newer: EntryMap; readonly was: Differences };

type Differences = ReadonlyMap<string, Entry | undefined>;

/**
 * An immutable map of entries. Reading the newest version is one look-up in a Map; reading an older version costs at most one look-up for
 * each newer version. Iterating copies the map, so that later versions do not affect the iteration.
 */
export class EntryMap implements ReadonlyMap<string, Entry> {
  readonly size: number;
  // This is not a #field, because deep comparison (assert.deepEqual) must see the content.
  private version: Version;

  static of(entries: ReadonlyMap<string, Entry>): EntryMap {
    return entries instanceof EntryMap ? entries : new EntryMap(new Map(entries));
  }

  private constructor(entries: Map<string, Entry>) {
    this.version = { kind: 'newest', entries };
    this.size = entries.size;
  }

  /** Returns the map with the changes applied in order; deleting an unknown id has no effect. */
  with(changes: readonly Change[]): EntryMap {
    const { version } = this;
    const entries = version.kind === 'newest' ? version.entries : this.copy();
    const was = new Map<string, Entry | undefined>();
    for (const change of changes) {
      const id = change.kind === 'put' ? change.entry.id : change.id;
      if (!was.has(id)) was.set(id, entries.get(id));
      if (change.kind === 'put') entries.set(id, change.entry);
      else entries.delete(id);
    }
    const newer = new EntryMap(entries);
    if (version.kind === 'newest') this.version = { kind: 'older', newer, was };
    return newer;
  }

  /**
   * Returns, by id, the entries of this version that may be different in `newer`; undefined if `newer` was not derived from this version.
   * Also links this version directly to `newer`, so that the versions in between can be garbage-collected.
   */
  differencesTo(newer: EntryMap): Differences | undefined {
    const was = new Map<string, Entry | undefined>();
    let at: EntryMap = this;
    while (at !== newer) {
      const { version } = at;
      if (version.kind === 'newest') return undefined;
      for (const [id, entry] of version.was) if (!was.has(id)) was.set(id, entry);
      at = version.newer;
    }
    if (at !== this) this.version = { kind: 'older', newer, was };
    return was;
  }

  get(id: string): Entry | undefined {
    let { version } = this;
    while (version.kind === 'older') {
      if (version.was.has(id)) return version.was.get(id);
      version = version.newer.version;
    }
    return version.entries.get(id);
  }

  has(id: string): boolean {
    return this.get(id) !== undefined;
  }

  /** Returns the entries without a copy if this is the newest version. The result is valid until the next change of the map. */
  current(): ReadonlyMap<string, Entry> {
    const { version } = this;
    return version.kind === 'newest' ? version.entries : this.copy();
  }

  keys(): MapIterator<string> {
    return this.copy().keys();
  }

  values(): MapIterator<Entry> {
    return this.copy().values();
  }

  entries(): MapIterator<[string, Entry]> {
    return this.copy().entries();
  }

  [Symbol.iterator](): MapIterator<[string, Entry]> {
    return this.entries();
  }

  forEach(visit: (entry: Entry, id: string, map: ReadonlyMap<string, Entry>) => void): void {
    for (const [id, entry] of this) visit(entry, id, this);
  }

  private copy(): Map<string, Entry> {
    const differences: Differences[] = [];
    let { version } = this;
    while (version.kind === 'older') {
      differences.push(version.was);
      version = version.newer.version;
    }
    const entries = new Map(version.entries);
    for (const was of differences.reverse()) {
      for (const [id, entry] of was) {
        if (entry === undefined) entries.delete(id);
        else entries.set(id, entry);
      }
    }
    return entries;
  }
}

/**
 * Returns the ids whose entries may differ between two maps; entries with any other id are equal. If one map was derived from the other
 * map, returns the ids of the changes between the two maps. Otherwise returns all ids of the two maps.
 */
export function possiblyChangedIds(a: ReadonlyMap<string, Entry>, b: ReadonlyMap<string, Entry>): Iterable<string> {
  if (a === b) return [];
  const known = a instanceof EntryMap && b instanceof EntryMap ? (a.differencesTo(b) ?? b.differencesTo(a)) : undefined;
  return known?.keys() ?? new Set([...a.keys(), ...b.keys()]);
}
