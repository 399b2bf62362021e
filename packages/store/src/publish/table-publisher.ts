import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  type Change,
  diff,
  EMPTY_TABLE,
  type Entry,
  encodeEntry,
  type RoutingTable,
  type ServiceEntry,
  type TablePosition,
} from '@weir/model/data-plane';
import type { PublishResult, TableMeta, TableSnapshot, TableStore } from '../contract.ts';
import { StoreError } from '../errors.ts';
import { MAX_BYTES_PER_REVISION, MAX_CHANGES_PER_REVISION } from '../limits.ts';
import { isSamePosition } from '../position.ts';

export type PublishOutcome =
  | {
      readonly kind: 'published';
      readonly position: TablePosition;
      /** The table was published whole, because the store did not hold what this leader wrote. */
      readonly newEpoch: boolean;
    }
  /** The store holds just this already. */
  | { readonly kind: 'unchanged'; readonly position: TablePosition }
  /** Another leads: nothing more is written until `lead` is called again, after the election is won again. */
  | { readonly kind: 'not-leader'; readonly leader: number };

export interface TablePublisherOptions {
  readonly store: TableStore;
  /** A random id for a revision. */
  readonly newId?: () => string;
  /** Fewer in tests. */
  readonly maxChangesPerRevision?: number;
}

interface TableWrite {
  readonly to: RoutingTable;
  readonly changes: readonly Change[];
  readonly changedAt?: number | undefined;
}

/** A position that was written or may have been, and the table there; undefined: only part of one. */
interface WrittenVersion {
  readonly position: TablePosition;
  readonly table: RoutingTable | undefined;
}

/**
 * The writing end of the table, one call at a time. It knows what the store should hold, so that a change costs what changed;
 * when it cannot be sure (a call failed, the connection was lost) it looks, and when the store holds anything else it opens a
 * new epoch and publishes the whole.
 */
export class TablePublisher {
  readonly #store: TableStore;
  readonly #newId: () => string;
  readonly #maxChangesPerRevision: number | undefined;
  #leader: number | undefined;
  /** What the store holds, as far as we know; the last one for sure unless `#inDoubt`. */
  #writtenVersions: readonly WrittenVersion[] = [];
  #isPositionUncertain = false;

  constructor({ store, newId = randomUUID, maxChangesPerRevision }: TablePublisherOptions) {
    this.#store = store;
    this.#maxChangesPerRevision = maxChangesPerRevision;
    this.#newId = newId;
  }

  /** False before `lead`, and after an outcome `not-leader`. */
  get isLeader(): boolean {
    return this.#leader !== undefined;
  }

  /** What `publish` last left in the store; undefined before, and while that is not known. */
  get published(): { readonly table: RoutingTable; readonly position: TablePosition } | undefined {
    const last = this.#writtenVersions.at(-1);
    if (this.#isPositionUncertain || last?.table === undefined) return undefined;
    return { table: last.table, position: last.position };
  }

  /**
   * Claims the lead, after the election is won, and takes over the table in the store: what is whole there is not published
   * again. Returns it (a new leader decides on top of what the last one gave out); undefined: there is none.
   */
  async becomeLeader(): Promise<TableSnapshot | undefined> {
    this.#leader = undefined;
    const leader = await this.#store.claimLeader();
    const copy = await this.#store.read();
    this.#leader = leader;
    this.#writtenVersions = copy === undefined || copy.unreadable.length > 0 ? [] : [copy];
    this.#isPositionUncertain = false;
    return copy;
  }

  /** The store may not hold any more what we wrote (the connection was lost): the next `publish` looks, even for no change. */
  recheck(): void {
    this.#isPositionUncertain = true;
  }

  /**
   * Makes the store hold `to`. `changedAt`: since when the world has been so, milliseconds since the epoch; undefined: not
   * known. Rejects when the store is away; then come again.
   */
  async publish(to: RoutingTable, changedAt?: number): Promise<PublishOutcome> {
    const leader = this.#leader;
    assert(leader !== undefined, 'lead() comes before publish()');
    if (this.#isPositionUncertain) {
      this.#releaseVersionsBetween(to);
      const meta = await this.#resolvePosition();
      if (meta !== undefined && meta.leader !== leader) return this.#stepDown(meta.leader);
    }
    const from = this.published;
    if (from !== undefined) {
      const changes = diff(from.table, to);
      if (changes.length === 0) return { kind: 'unchanged', position: from.position };
      const result = await this.#write(leader, from.position, { to, changes, changedAt });
      if (result.kind === 'published') return { ...result, newEpoch: false };
      if (result.kind === 'not-leader') return this.#stepDown(result.leader);
    }
    return this.#publishComplete(leader, to);
  }

  async #publishComplete(leader: number, to: RoutingTable): Promise<PublishOutcome> {
    this.#writtenVersions = [];
    const opened = await this.#store.openEpoch({ leader, id: this.#newId() });
    if (opened.kind === 'not-leader') return this.#stepDown(opened.leader);
    if (opened.kind === 'published') {
      // without the time of a change: whoever follows reads the whole
      const result = await this.#write(leader, opened.position, { to, changes: changesForCompleteTable(to) });
      if (result.kind === 'published') return { ...result, newEpoch: true };
      if (result.kind === 'not-leader') return this.#stepDown(result.leader);
    }
    this.#isPositionUncertain = true;
    throw new StoreError(
      'AWAY',
      'the store was wiped or rolled back while the table was published; it is published again',
    );
  }

  async #write(leader: number, from: TablePosition, { to, changes, changedAt }: TableWrite): Promise<PublishResult> {
    const parts = splitIntoRevisions(changes, this.#maxChangesPerRevision);
    let predecessor = from;
    for (const [index, part] of parts.entries()) {
      const complete = index === parts.length - 1;
      const id = this.#newId();
      const position = { epoch: predecessor.epoch, revision: predecessor.revision + 1, id };
      // noted before it is sent: when no answer comes it may have been written or not, and `#look` finds out
      this.#writtenVersions = [...this.#writtenVersions.slice(-1), { position, table: complete ? to : undefined }];
      this.#isPositionUncertain = true;
      const result = await this.#store.publish({ leader, predecessor, id, changes: part, complete, changedAt });
      if (result.kind !== 'published') return result;
      this.#writtenVersions = this.#writtenVersions.slice(-1);
      this.#isPositionUncertain = false;
      predecessor = position;
    }
    return { kind: 'published', position: predecessor };
  }

  /** Ends the doubt: keeps that of what we wrote which the store is at, if any. */
  async #resolvePosition(): Promise<TableMeta | undefined> {
    const meta = await this.#store.meta();
    this.#writtenVersions = this.#writtenVersions.filter(({ position }) => isSamePosition(position, meta));
    this.#isPositionUncertain = false;
    return meta;
  }

  /** A version that is kept keeps all that come after it until the two are compared: in an outage there is one each second. */
  #releaseVersionsBetween(to: RoutingTable): void {
    for (const { table } of this.#writtenVersions) if (table !== undefined) diff(table, to);
  }

  #stepDown(leader: number): PublishOutcome {
    this.#leader = undefined;
    return { kind: 'not-leader', leader };
  }
}

/** The changes in their order, in as few revisions as the limits allow; at least one, which may be empty. */
export function splitIntoRevisions(
  changes: readonly Change[],
  maxChanges: number = MAX_CHANGES_PER_REVISION,
): readonly (readonly Change[])[] {
  const parts: Change[][] = [];
  let part: Change[] = [];
  let bytes = 0;
  for (const change of changes) {
    const size = change.kind === 'put' ? Buffer.byteLength(encodeEntry(change.entry)) : change.id.length;
    if (part.length > 0 && (part.length === maxChanges || bytes + size > MAX_BYTES_PER_REVISION)) {
      parts.push(part);
      part = [];
      bytes = 0;
    }
    part.push(change);
    bytes += size;
  }
  return [...parts, part];
}

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
