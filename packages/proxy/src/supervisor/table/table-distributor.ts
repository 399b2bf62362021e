// Distributes the table of this node. Applies changes from the store to the matcher of the main thread, sends the
// changes to the workers, and tracks which changes all workers have applied.
import {
  type Change,
  createMatcher,
  EMPTY_TABLE,
  entryIdOf,
  type Matcher,
  movedResources,
  type NodeEntry,
  nodeId,
  patchMatcher,
  type RouteKey,
  type RoutingTable,
  type ServiceEntry,
  type TablePosition,
} from '@weir/model/data-plane';
import type { AppliedRevision, PositionedTable } from '@weir/store';
import type { LimiterRegistry } from '../../limits/limiter-registry.ts';
import { TableLimits } from '../../limits/table-limits.ts';
import { UNROUTED_SLOT } from '../../metering/counters.ts';
import type { SlotOwner, SlotRegistry } from '../../metering/slot-registry.ts';
import type { TableCommand, WorkerCommand } from '../../worker/messages.ts';
import { monotonicMs, TimeSlicedQueue } from '../../worker/time-sliced-queue.ts';
import { splitTable } from '../table-delivery.ts';
import type { WorkerPool } from '../worker-pool.ts';
import { NodeTable } from './node-table.ts';
import { MarkTracker } from './propagation.ts';

/**
 * The maximum time for which a large table is applied in one turn of the event loop. Heartbeats and suspensions are
 * delayed by about this time at most.
 */
const SLICE_MS = 10;

export interface TableDistributorOptions {
  readonly node: string;
  readonly slots: SlotRegistry;
  readonly limits: LimiterRegistry;
  readonly pool: Pick<WorkerPool, 'post' | 'mark' | 'addCounterBlock'>;
  /**
   * Called after the changes of the routes with these keys were applied to the matcher and sent to the workers. Also
   * called with an empty list at the end of each change.
   */
  readonly onRoutesChanged: (keys: readonly RouteKey[]) => void;
  /** Called when the limits of a change are in effect, before the routes of the change are applied. */
  readonly onLimitsChanged: () => void;
  /** Called when all workers have applied the changes made until `changedAt` (milliseconds since the epoch). */
  readonly onApplied: (changedAt: number) => void;
  /** Returns milliseconds of a clock that never goes back; by default the kernel's monotonic clock. */
  readonly sliceClock?: () => number;
}

export class TableDistributor {
  readonly matcher: Matcher;
  readonly limits: TableLimits;
  readonly #options: TableDistributorOptions;
  readonly #table: NodeTable;
  readonly #applyQueue: TimeSlicedQueue;
  readonly #pending = new PendingChanges();
  readonly #slotsByServiceUid = new Map<string, { readonly owner: SlotOwner; readonly slot: number }>();
  readonly #unconfirmed = new MarkTracker<AppliedRevision>();
  #position: TablePosition | null = null;
  #isPartial = false;
  #applied: TablePosition | null = null;

  constructor(options: TableDistributorOptions) {
    this.#options = options;
    this.#applyQueue = new TimeSlicedQueue({ sliceMs: SLICE_MS, now: options.sliceClock ?? monotonicMs });
    this.#table = new NodeTable(options.node);
    this.limits = new TableLimits(options.limits);
    this.matcher = createMatcher(EMPTY_TABLE, options.node);
  }

  /** Takes a complete table: the fleet's table from the store, or the copy from the disk. */
  replace(table: RoutingTable, position: TablePosition): void {
    this.#enqueue((pending) => pending.replace(table, { position }));
  }

  /** Takes `changes` and `table`, the complete table after these changes. */
  patch(changes: readonly Change[], table: RoutingTable, revision: AppliedRevision): void {
    this.#enqueue((pending) => pending.add(changes, table, revision));
  }

  /** To be called when all workers have reached `mark`. */
  onMarkReached(mark: number): void {
    this.#options.limits.setAppliedMark(mark);
    for (const { position, changedAt } of this.#unconfirmed.takeReached(mark)) {
      this.#applied = position;
      if (changedAt !== undefined) this.#options.onApplied(changedAt);
    }
  }

  /** The position that all workers have applied; null before the first table. */
  get applied(): TablePosition | null {
    return this.#applied;
  }

  /** Whether the first table has arrived. */
  get hasTable(): boolean {
    return this.#position !== null;
  }

  /** This node's part of the table and its position; undefined before the first table. */
  get placed(): PositionedTable | undefined {
    return this.#position === null ? undefined : { table: this.#table.part, position: this.#position };
  }

  /**
   * Whether a change is being applied. Until the change is applied completely, Services of a shared listener may be
   * missing.
   */
  get isPartial(): boolean {
    return this.#isPartial;
  }

  get nodeEntry(): NodeEntry | undefined {
    const entry = this.#table.part.entries.get(nodeId(this.#options.node));
    return entry?.kind === 'node' ? entry : undefined;
  }

  /** Returns a command with all entries of this node's part of the table, for a worker that starts. */
  commandForNewWorker(): WorkerCommand {
    const changes = [...this.#table.part.entries.values()].map((entry): Change => ({ kind: 'put', entry }));
    const slots = [...this.#slotsByServiceUid].map(([uid, { slot }]) => [uid, slot] as const);
    return { kind: 'table', changes, slots, limits: this.limits.allRows(), isFirst: true };
  }

  #enqueue(addTo: (pending: PendingChanges) => void): void {
    const isScheduled = !this.#pending.isEmpty;
    addTo(this.#pending);
    if (!isScheduled) this.#applyQueue.add(this.#applyPending());
  }

  *#applyPending(): Iterable<void> {
    const next = this.#pending.take();
    if (next === undefined) return;
    const { table, revision, changes } = next;
    const ownChanges = changes === undefined ? this.#table.replace(table) : this.#table.patch(changes, table);
    yield* this.#apply(ownChanges, revision);
  }

  /**
   * Applies changes in steps, so that the first Services of a large change are served while the remaining Services are
   * still being applied.
   */
  *#apply(changes: readonly Change[], { position, changedAt }: AppliedRevision): Iterable<void> {
    const { pool, slots } = this.#options;
    // A first table is treated as if it moved no listener or host. Otherwise the owner of a wildcard host would be
    // applied together with the thousands of Services that have hosts below it. No client can ask for a host before the
    // last part is applied, because shared listeners open only after the last part (`isPartial`).
    const moved = this.#position === null ? [] : movedResources(this.matcher, changes);
    const { assigned, released } = this.#assignSlots(changes);
    const limits = this.limits.apply(changes, this.#table.part.entries);
    const command: TableCommand = {
      kind: 'table',
      changes,
      slots: assigned,
      limits: limits.rows,
      movedResources: moved,
    };
    const isFirst = this.#position === null;
    this.#position = position;
    this.#isPartial = true;
    if (isFirst || limits.mayChangeLimits) this.#options.onLimitsChanged();
    for (const part of splitTable(isFirst ? { ...command, isFirst } : command)) {
      this.#applyPart(part);
      yield;
    }
    this.#isPartial = false;
    this.#options.onRoutesChanged([]);
    const mark = pool.mark();
    this.limits.release(limits.releasedOwners, mark);
    for (const owner of released) slots.release(owner, mark);
    this.#unconfirmed.add(mark, { position, ...(changedAt === undefined ? {} : { changedAt }) });
  }

  #applyPart(part: TableCommand): void {
    const { pool, onRoutesChanged } = this.#options;
    const keys = patchMatcher(this.matcher, part.changes);
    if (part.changes.length > 0 || part.slots.length > 0 || part.limits?.length) pool.post(part);
    onRoutesChanged(keys);
  }

  #assignSlots(changes: readonly Change[]): { readonly assigned: [string, number][]; readonly released: SlotOwner[] } {
    const assigned: [string, number][] = [];
    const released: SlotOwner[] = [];
    for (const change of changes) {
      const uid = serviceUidOf(change);
      if (uid === undefined) continue;
      const before = this.#slotsByServiceUid.get(uid);
      const service = change.kind === 'put' && change.entry.kind === 'service' ? change.entry : undefined;
      const now = service && this.#slotFor(service, before?.owner);
      if (now?.slot === before?.slot) continue;
      if (before !== undefined) released.push(before.owner);
      if (now === undefined) this.#slotsByServiceUid.delete(uid);
      assigned.push([uid, now?.slot ?? UNROUTED_SLOT]);
    }
    return { assigned, released };
  }

  #slotFor(service: ServiceEntry, before: SlotOwner | undefined): { readonly slot: number } {
    const { slots, pool } = this.#options;
    // While two policies claim the namespace of a Service, the traffic of the Service is counted for its previous
    // tenant.
    const owner: SlotOwner = {
      service: service.uid,
      tenant: service.tenant ?? before?.tenant ?? '',
      namespace: service.namespace,
      name: service.name,
    };
    const { index, grows } = slots.assign(owner);
    if (grows) pool.addCounterBlock();
    this.#slotsByServiceUid.set(service.uid, { owner, slot: index });
    return { slot: index };
  }
}

const SERVICE_PREFIX = 'service/';

function serviceUidOf(change: Change): string | undefined {
  if (change.kind === 'put') return change.entry.kind === 'service' ? change.entry.uid : undefined;
  return change.id.startsWith(SERVICE_PREFIX) ? change.id.slice(SERVICE_PREFIX.length) : undefined;
}

/** A merged revision. `changes` holds the last change of each entry; it is undefined if any entry may have changed. */
export interface PendingTable {
  readonly table: RoutingTable;
  readonly revision: AppliedRevision;
  readonly changes: readonly Change[] | undefined;
}

/**
 * Merges revisions that arrive while a large change is being applied. Holds only the last change of each entry, and at
 * most as many changes as the table has entries.
 */
export class PendingChanges {
  #latest: Pick<PendingTable, 'table' | 'revision'> | undefined;
  /**
   * The last change of each entry, by entry id; undefined if a complete table arrived or there are too many changes.
   */
  #changes: Map<string, Change> | undefined = new Map();

  get isEmpty(): boolean {
    return this.#latest === undefined;
  }

  /** Takes a complete table, which supersedes the pending changes. */
  replace(table: RoutingTable, revision: AppliedRevision): void {
    this.#latest = { table, revision };
    this.#changes = undefined;
  }

  /** Takes `changes` and `table`, the complete table after these changes. */
  add(changes: readonly Change[], table: RoutingTable, revision: AppliedRevision): void {
    // A merged revision keeps the time of its oldest change, so that the propagation latency of that change is
    // measured.
    const changedAt = this.#latest?.revision.changedAt ?? revision.changedAt;
    this.#latest = { table, revision: changedAt === undefined ? revision : { ...revision, changedAt } };
    for (const change of changes) this.#changes?.set(entryIdOf(change), change);
    if (this.#changes !== undefined && this.#changes.size > table.entries.size) this.#changes = undefined;
  }

  /** Removes and returns the merged change, or returns undefined if nothing is pending. */
  take(): PendingTable | undefined {
    if (this.#latest === undefined) return undefined;
    const { table, revision } = this.#latest;
    const changes = this.#changes && [...this.#changes.values()];
    this.#latest = undefined;
    this.#changes = new Map();
    return { table, revision, changes };
  }
}
