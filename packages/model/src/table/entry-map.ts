// The entries of a table, as a value that is changed often: a change costs what it changes, not a copy of the whole. The newest
// version has the one real map; an older one has what stood in it otherwise than in the next (H. Baker, "Shallow Binding Makes
// Functional Arrays Fast", 1991).
import type { Entry } from './entry.ts';
import type { Change } from './table.ts';

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
