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
      /** Whether the complete table was published in a new epoch, because the store did not hold what this leader wrote. */
      readonly newEpoch: boolean;
    }
  /** The store already holds this table. */
  | { readonly kind: 'unchanged'; readonly position: TablePosition }
  /** Another process is the leader. Call `becomeLeader` after winning the election again. */
  | { readonly kind: 'not-leader'; readonly leader: number };

export interface TablePublisherOptions {
  readonly store: TableStore;
  /** Creates a random id for a revision. */
  readonly newId?: () => string;
  /** Default: `MAX_CHANGES_PER_REVISION`. Tests use a lower number. */
  readonly maxChangesPerRevision?: number;
}

interface TableWrite {
  readonly to: RoutingTable;
  readonly changes: readonly Change[];
  readonly changedAt?: number | undefined;
}

/**
 * A position that was or may have been written, and the table at that position. The table is undefined if it is
 * incomplete there.
 */
interface WrittenVersion {
  readonly position: TablePosition;
  readonly table: RoutingTable | undefined;
}

/**
 * Publishes the table, one call at a time. Remembers what the store holds and writes only the changes. After a failed call or a lost
 * connection, reads the stored position first; if the store holds another table, opens a new epoch and publishes the complete table.
 */
export class TablePublisher {
  readonly #store: TableStore;
  readonly #newId: () => string;
  readonly #maxChangesPerRevision: number | undefined;
  #leader: number | undefined;
  /** The versions that the store may hold. While `#isPositionUncertain` is false, the store holds the last version. */
  #writtenVersions: readonly WrittenVersion[] = [];
  #isPositionUncertain = false;

  constructor({ store, newId = randomUUID, maxChangesPerRevision }: TablePublisherOptions) {
    this.#store = store;
    this.#maxChangesPerRevision = maxChangesPerRevision;
    this.#newId = newId;
  }

  /** False before `becomeLeader` and after the outcome `not-leader`. */
  get isLeader(): boolean {
    return this.#leader !== undefined;
  }

  /** The table in the store; undefined while unknown. */
  get published(): { readonly table: RoutingTable; readonly position: TablePosition } | undefined {
    const last = this.#writtenVersions.at(-1);
    if (this.#isPositionUncertain || last?.table === undefined) return undefined;
    return { table: last.table, position: last.position };
  }

  /**
   * Claims leadership after winning the election. Returns the stored table, from which the new leader continues so that
   * allocations stay, or undefined if the store has no complete table. `publish` then writes only the differences to
   * this table.
   */
  async becomeLeader(): Promise<TableSnapshot | undefined> {
    this.#leader = undefined;
    const leader = await this.#store.claimLeader();
    const snapshot = await this.#store.read();
    this.#leader = leader;
    this.#writtenVersions = snapshot === undefined || snapshot.unreadable.length > 0 ? [] : [snapshot];
    this.#isPositionUncertain = false;
    return snapshot;
  }

  /** Makes the next `publish` read the stored position, even without a change. Call when the connection was lost. */
  recheck(): void {
    this.#isPositionUncertain = true;
  }

  /**
   * Makes the store hold `to`. `changedAt` is when the cause of the change was observed, in milliseconds since the Unix
   * epoch; undefined if unknown. Rejects with `StoreError` AWAY if the store is unreachable; then call `publish` again.
   */
  async publish(to: RoutingTable, changedAt?: number): Promise<PublishOutcome> {
    const leader = this.#leader;
    assert(leader !== undefined, 'call becomeLeader() before publish()');
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
      // Without `changedAt`, because followers read the complete table instead of this change.
      const result = await this.#write(leader, opened.position, { to, changes: changesForCompleteTable(to) });
      if (result.kind === 'published') return { ...result, newEpoch: true };
      if (result.kind === 'not-leader') return this.#stepDown(result.leader);
    }
    this.#isPositionUncertain = true;
    throw new StoreError(
      'AWAY',
      'the store was wiped or rolled back while the table was published; publish the table again',
    );
  }

  async #write(leader: number, from: TablePosition, { to, changes, changedAt }: TableWrite): Promise<PublishResult> {
    const revisions = splitIntoRevisions(changes, this.#maxChangesPerRevision);
    let predecessor = from;
    for (const [index, revision] of revisions.entries()) {
      const complete = index === revisions.length - 1;
      const id = this.#newId();
      const position = { epoch: predecessor.epoch, revision: predecessor.revision + 1, id };
      // Recorded before sending: without a response the revision may or may not be stored, which `#resolvePosition` finds out.
      this.#writtenVersions = [...this.#writtenVersions.slice(-1), { position, table: complete ? to : undefined }];
      this.#isPositionUncertain = true;
      const result = await this.#store.publish({ leader, predecessor, id, changes: revision, complete, changedAt });
      if (result.kind !== 'published') return result;
      this.#writtenVersions = this.#writtenVersions.slice(-1);
      this.#isPositionUncertain = false;
      predecessor = position;
    }
    return { kind: 'published', position: predecessor };
  }

  /** Reads the stored position and keeps only the written version at that position, if any. */
  async #resolvePosition(): Promise<TableMeta | undefined> {
    const meta = await this.#store.meta();
    this.#writtenVersions = this.#writtenVersions.filter(({ position }) => isSamePosition(position, meta));
    this.#isPositionUncertain = false;
    return meta;
  }

  /** Frees the tables between the kept versions and `to`: `diff` releases the history of changes that derived tables share. */
  #releaseVersionsBetween(to: RoutingTable): void {
    for (const { table } of this.#writtenVersions) if (table !== undefined) diff(table, to);
  }

  #stepDown(leader: number): PublishOutcome {
    this.#leader = undefined;
    return { kind: 'not-leader', leader };
  }
}

/** Splits changes, in order, into as few revisions as the limits allow. Returns at least one revision, which may be empty. */
export function splitIntoRevisions(
  changes: readonly Change[],
  maxChanges: number = MAX_CHANGES_PER_REVISION,
): readonly (readonly Change[])[] {
  const revisions: Change[][] = [];
  let revision: Change[] = [];
  let bytes = 0;
  for (const change of changes) {
    const size = change.kind === 'put' ? Buffer.byteLength(encodeEntry(change.entry)) : change.id.length;
    if (revision.length > 0 && (revision.length === maxChanges || bytes + size > MAX_BYTES_PER_REVISION)) {
      revisions.push(revision);
      revision = [];
      bytes = 0;
    }
    revision.push(change);
    bytes += size;
  }
  return [...revisions, revision];
}

/**
 * Returns the changes that create a complete table: each allocated Service followed by its certificate and listeners, then all other
 * entries. If the leader ends while writing, the next leader keeps the allocations of the Services in the incomplete table; in the order
 * of ids it would find no complete Service until nearly all entries are written.
 */
export function changesForCompleteTable(table: RoutingTable): readonly Change[] {
  const changesByService = new Map<string, Change[]>();
  const otherChanges: Change[] = [];
  const changes = diff(EMPTY_TABLE, table);
  for (const change of changes) {
    const entry = entryOf(change);
    if (hasSettings(entry)) changesByService.set(entry.uid, [change]);
  }
  for (const change of changes) {
    const entry = entryOf(change);
    if (hasSettings(entry)) continue;
    const belongsToService = entry?.kind === 'listener' || entry?.kind === 'certificate';
    const serviceChanges = belongsToService ? changesByService.get(entry.service) : undefined;
    (serviceChanges ?? otherChanges).push(change);
  }
  return [...[...changesByService.values()].flat(), ...otherChanges];
}

function hasSettings(entry: Entry | undefined): entry is ServiceEntry {
  return entry?.kind === 'service' && entry.settings !== null;
}

function entryOf(change: Change): Entry | undefined {
  return change.kind === 'put' ? change.entry : undefined;
}
