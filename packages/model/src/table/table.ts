import { isJsonEqual } from '../json-equal.ts';
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

/**
 * A new table: `table` with the changes made in their order. Deleting what is not there changes nothing. Costs what the changes
 * cost when `table` was made so itself, and is the newest of its history; else a copy.
 */
export function apply(table: RoutingTable, changes: readonly Change[]): RoutingTable {
  return changes.length === 0 ? table : { entries: EntryMap.of(table.entries).with(changes) };
}

// The entries of a table, as a value that is changed often: a change costs what it changes, not a copy of the whole. The newest
// version has the one real map; an older one has what stood in it otherwise than in the next (H. Baker, "Shallow Binding Makes
// Functional Arrays Fast", 1991).
type Version =
  | { readonly kind: 'newest'; readonly entries: Map<string, Entry> }
  /** `was`: what stood here under the ids that `newer` has otherwise; undefined: nothing. */
  | { readonly kind: 'older'; readonly newer: EntryMap; readonly was: Differences };

type Differences = ReadonlyMap<string, Entry | undefined>;

/**
 * Holds for ever what it held when it was made (in any order). Reading the newest version is reading a map; reading an older one
 * costs a look for each version since. Listing costs a copy, so that no later version shows in it.
 */
export class EntryMap implements ReadonlyMap<string, Entry> {
  readonly size: number;
  // No #field: whoever compares objects in depth has to see what is in it.
  private version: Version;

  static of(entries: ReadonlyMap<string, Entry>): EntryMap {
    return entries instanceof EntryMap ? entries : new EntryMap(new Map(entries));
  }

  private constructor(entries: Map<string, Entry>) {
    this.version = { kind: 'newest', entries };
    this.size = entries.size;
  }

  /** With the changes made in their order. Deleting what is not there changes nothing. */
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
   * What stood here under the ids that may have changed until `newer`; undefined: that did not come out of this one. Whoever keeps
   * an old version and asks now and then does not keep all that were in between.
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
 * Ids under which two maps may hold something else; the others are the same in both. Of two versions of one history these are
 * few, else all of both.
 */
export function possiblyChangedIds(a: ReadonlyMap<string, Entry>, b: ReadonlyMap<string, Entry>): Iterable<string> {
  if (a === b) return [];
  const known = a instanceof EntryMap && b instanceof EntryMap ? (a.differencesTo(b) ?? b.differencesTo(a)) : undefined;
  return known?.keys() ?? new Set([...a.keys(), ...b.keys()]);
}
