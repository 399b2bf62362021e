import assert from 'node:assert/strict';
import type { Change, Entry, RoutingTable, TablePosition } from '@weir/model/data-plane';
import type { PublishRequest, PublishResult, Revision, TableMeta, TableSnapshot, TableStore } from '../contract.ts';
import { StoreError } from '../errors.ts';
import { DEFAULT_KEPT_REVISIONS, MAX_CHANGES_PER_REVISION } from '../limits.ts';
import { describePosition, isNext, isSamePosition } from '../position.ts';
import type { MemoryConnection } from './memory-connection.ts';

/** The stored table. A state directory stores all fields except `revisions`. */
export interface TableContent {
  /** The last leader token; 0 if leadership was never claimed. */
  leader: number;
  position: TablePosition | undefined;
  complete: boolean;
  entries: Map<string, Entry>;
  revisions: Revision[];
}

export function emptyTableContent(): TableContent {
  return { leader: 0, position: undefined, complete: false, entries: new Map(), revisions: [] };
}

export interface MemoryTableOptions {
  readonly connection: MemoryConnection;
  readonly onChange: () => void;
  readonly keptRevisions?: number;
}

export class MemoryTable implements TableStore {
  content: TableContent = emptyTableContent();
  readonly #connection: MemoryConnection;
  readonly #onChange: () => void;
  readonly #keptRevisions: number;
  /** The highest leader token and epoch that this process has seen. Later values are higher, even if the store was wiped. */
  #highestLeader = 0;
  #highestEpoch = 0;

  constructor({ connection, onChange, keptRevisions = DEFAULT_KEPT_REVISIONS }: MemoryTableOptions) {
    this.#connection = connection;
    this.#onChange = onChange;
    this.#keptRevisions = keptRevisions;
  }

  async claimLeader(): Promise<number> {
    this.#connection.assertReady();
    this.#highestLeader = Math.max(this.#highestLeader, this.content.leader) + 1;
    this.content.leader = this.#highestLeader;
    this.#onChange();
    return this.content.leader;
  }

  async meta(): Promise<TableMeta | undefined> {
    this.#connection.assertReady();
    return this.#meta();
  }

  async openEpoch({ leader, id }: { readonly leader: number; readonly id: string }): Promise<PublishResult> {
    this.#connection.assertReady();
    const { content } = this;
    if (leader !== content.leader) return { kind: 'not-leader', leader: content.leader };
    this.#highestEpoch = Math.max(this.#highestEpoch, content.position?.epoch ?? 0) + 1;
    content.position = Object.freeze({ epoch: this.#highestEpoch, revision: 0, id });
    content.complete = false;
    content.entries.clear();
    content.revisions = [];
    return this.#published(content.position);
  }

  async publish({ leader, predecessor, id, changes, complete, changedAt }: PublishRequest): Promise<PublishResult> {
    assert(changes.length <= MAX_CHANGES_PER_REVISION, 'split a larger change into several revisions');
    this.#connection.assertReady();
    const { content } = this;
    if (leader !== content.leader) return { kind: 'not-leader', leader: content.leader };
    const before = content.position;
    if (before === undefined || !isSamePosition(predecessor, before)) {
      return { kind: 'wrong-predecessor', meta: this.#meta() };
    }
    const position = Object.freeze({ epoch: before.epoch, revision: before.revision + 1, id });
    applyInPlace(content.entries, changes);
    content.position = position;
    content.complete = complete;
    const known = changedAt === undefined ? {} : { changedAt };
    content.revisions.push({ position, predecessor: before.id, complete, ...known, changes, unreadable: [] });
    if (content.revisions.length > this.#keptRevisions) content.revisions.shift();
    return this.#published(position);
  }

  async read(): Promise<TableSnapshot | undefined> {
    this.#connection.assertReady();
    const { position, complete, entries } = this.content;
    if (position === undefined || !complete) return undefined;
    const table: RoutingTable = { entries: new Map(entries) };
    return { table, position, unreadable: [] };
  }

  async readPartial(): Promise<RoutingTable | undefined> {
    this.#connection.assertReady();
    const { entries } = this.content;
    return entries.size === 0 ? undefined : { entries: new Map(entries) };
  }

  async *revisions({ after, signal }: { after: TablePosition; signal: AbortSignal }): AsyncGenerator<Revision> {
    let last = after;
    while (!signal.aborted) {
      this.#connection.assertReady();
      const next = this.#after(last);
      if (next === undefined) {
        await this.#connection.changes.wait(signal);
        continue;
      }
      last = next.position;
      yield next;
    }
  }

  #after(last: TablePosition): Revision | undefined {
    const { position, revisions } = this.content;
    if (isSamePosition(last, position)) return undefined;
    const next = revisions[last.revision + 1 - (revisions[0]?.position.revision ?? 0)];
    if (next !== undefined && isNext(last, next)) return next;
    throw new StoreError(
      'GAP',
      `the table moved from ${describePosition(last)} to ${describePosition(position)}, and the changes in between are missing or were rolled back`,
    );
  }

  #meta(): TableMeta | undefined {
    const { leader, position, complete } = this.content;
    return position === undefined ? undefined : { ...position, complete, leader };
  }

  #published(position: TablePosition): PublishResult {
    this.#onChange();
    this.#connection.changes.notify();
    return { kind: 'published', position };
  }
}

function applyInPlace(entries: Map<string, Entry>, changes: readonly Change[]): void {
  for (const change of changes) {
    if (change.kind === 'put') entries.set(change.entry.id, change.entry);
    else entries.delete(change.id);
  }
}
