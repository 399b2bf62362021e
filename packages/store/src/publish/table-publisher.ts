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
      /** Whether the complete table was published in a new epoch, because the stored table was not the table that this leader wrote. */
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

/** A position at which the stored table is or may be, and the table at that position; undefined if the table is incomplete there. */
interface WrittenVersion {
  readonly position: TablePosition;
  readonly table: RoutingTable | undefined;
}

/**
 * Publishes the routing table. The caller must not call `publish` again before the last call has ended. Remembers the stored table and
 * writes only the changes. After a failed call or a lost connection, reads the stored position first. If the store holds another table,
 * opens a new epoch and publishes the complete table.
 */
export class TablePublisher {
  readonly #store: TableStore;
  readonly #newId: () => string;
  readonly #maxChangesPerRevision: number | undefined;
  #leader: number | undefined;
  /** The versions of the table that the store may hold. While `#isPositionUncertain` is false, the store holds the last version. */
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

  /** The stored table and its position; undefined if unknown. */
  get published(): { readonly table: RoutingTable; readonly position: TablePosition } | undefined {
    const last = this.#writtenVersions.at(-1);
    if (this.#isPositionUncertain || last?.table === undefined) return undefined;
    return { table: last.table, position: last.position };
  }

  /**
   * Claims leadership after winning the election. Returns the stored table, or undefined if the store has no complete table. The new leader
   * starts from the stored table, so that existing allocations stay. `publish` writes only the differences from the stored table, unless
   * the table has unreadable entries.
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

  /**
   * Makes the next `publish` read the stored position, even if the table has not changed. Call this method after the connection was lost.
   */
  recheck(): void {
    this.#isPositionUncertain = true;
  }

  /**
   * Publishes the table `to`. `changedAt` is the time at which the cause of the change was observed, in milliseconds since the Unix epoch;
   * undefined if unknown. Rejects with `StoreError` AWAY if the store is unreachable; call `publish` again in this case.
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
      // Omits `changedAt`, because followers read the complete table instead of this change.
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
    let predecessor = from;
    for (const { changes: revision, complete } of splitIntoRevisions(changes, this.#maxChangesPerRevision)) {
      const id = this.#newId();
      const position = { epoch: predecessor.epoch, revision: predecessor.revision + 1, id };
      // Records the version before the revision is sent: if no response arrives, the store may nevertheless have stored the revision.
      // `#resolvePosition` then finds out whether it has.
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

  /** Reads the stored position. Keeps the written version at that position, if any, and forgets the other versions. */
  async #resolvePosition(): Promise<TableMeta | undefined> {
    const meta = await this.#store.meta();
    this.#writtenVersions = this.#writtenVersions.filter(({ position }) => isSamePosition(position, meta));
    this.#isPositionUncertain = false;
    return meta;
  }

  /**
   * Lets the garbage collector free the tables between each kept version and `to`: `diff` links the older table directly to the newer
   * table.
   */
  #releaseVersionsBetween(to: RoutingTable): void {
    for (const { table } of this.#writtenVersions) if (table !== undefined) diff(table, to);
  }

  #stepDown(leader: number): PublishOutcome {
    this.#leader = undefined;
    return { kind: 'not-leader', leader };
  }
}

export interface RevisionChanges {
  readonly changes: readonly Change[];
  /** True for the last revision. */
  readonly complete: boolean;
}

/**
 * Splits changes, in order, into as few revisions as the limits allow. Yields at least one revision. Without changes, this revision is
 * empty. Encodes the entries of a revision only when the revision is requested, so that the caller can do other work in between.
 */
export function* splitIntoRevisions(
  changes: readonly Change[],
  maxChanges: number = MAX_CHANGES_PER_REVISION,
): Generator<RevisionChanges> {
  let revision: Change[] = [];
  let bytes = 0;
  for (const change of changes) {
    const size = change.kind === 'put' ? Buffer.byteLength(encodeEntry(change.entry)) : change.id.length;
    if (revision.length > 0 && (revision.length === maxChanges || bytes + size > MAX_BYTES_PER_REVISION)) {
      yield { changes: revision, complete: false };
      revision = [];
      bytes = 0;
    }
    revision.push(change);
    bytes += size;
  }
  yield { changes: revision, complete: true };
}

/**
 * Returns the changes that create a complete table: first each allocated Service followed by its certificates, error pages and listeners,
 * then all other entries. If the leader ends while writing, the next leader can keep the allocations of the Services that are written
 * completely. In the order of their ids, nearly all entries would be written before the first Service is complete.
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
    const belongsToService =
      entry?.kind === 'listener' || entry?.kind === 'certificate' || entry?.kind === 'error-pages';
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
