import {
  type Change,
  createMatcher,
  EMPTY_TABLE,
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
import { type LimiterRegistry, TableLimits } from '../../limits/limiter-registry.ts';
import { UNROUTED_SLOT } from '../../metering/counters.ts';
import type { SlotOwner, SlotRegistry } from '../../metering/slot-registry.ts';
import type { TableCommand, WorkerCommand } from '../../worker/messages.ts';
import { monotonicMs } from '../../worker/monotonic.ts';
import type { WorkerPool } from '../worker-pool.ts';
import { NodeTable } from './node-table.ts';
import { PendingChanges } from './pending-changes.ts';
import { splitTable } from './table-batches.ts';

// The table of this node as the main thread holds it: what followers bring goes to the matcher, to the workers as small
// changes, and to the listeners; and what all workers have applied is known.
export interface TableDistributorOptions {
  readonly node: string;
  readonly slots: SlotRegistry;
  readonly limits: LimiterRegistry;
  readonly pool: () => Pick<WorkerPool, 'post' | 'mark' | 'grow'>;
  /** These routes have changed; after the last of a change once more, with none. */
  readonly onRoutesChanged: (keys: readonly RouteKey[]) => void;
  /** All workers serve as the world has been since then, milliseconds since the epoch. */
  readonly onApplied: (changedAt: number) => void;
  /** By which turns are measured, in milliseconds that never go back. */
  readonly sliceClock?: () => number;
}

export class TableDistributor {
  readonly matcher: Matcher;
  readonly limits: TableLimits;
  readonly #options: TableDistributorOptions;
  readonly #table: NodeTable;
  readonly #applyQueue: TimeSlicedQueue;
  /** What the next take brings. */
  readonly #pending = new PendingChanges();
  /** Where each Service is counted now. */
  readonly #slotsByServiceUid = new Map<string, { readonly owner: SlotOwner; readonly slot: number }>();
  #position: TablePosition | null = null;
  #isPartial = false;
  #unconfirmed: (AppliedRevision & { readonly mark: number })[] = [];
  #applied: TablePosition | null = null;

  constructor(options: TableDistributorOptions) {
    this.#options = options;
    this.#applyQueue = new TimeSlicedQueue(options.sliceClock ?? monotonicMs);
    this.#table = new NodeTable(options.node);
    this.limits = new TableLimits(options.limits);
    this.matcher = createMatcher(EMPTY_TABLE, options.node);
  }

  /** A whole table, of the fleet or of the copy on the disk. */
  replace(table: RoutingTable, position: TablePosition): void {
    this.#enqueue((backlog) => backlog.replace(table, { position }));
  }

  /** `table` is the one before with `changes` made. */
  patch(changes: readonly Change[], table: RoutingTable, revision: AppliedRevision): void {
    this.#enqueue((backlog) => backlog.add(changes, table, revision));
  }

  /** The workers have reached this mark. */
  onMarkReached(mark: number): void {
    this.#options.limits.setAppliedMark(mark);
    const done = this.#unconfirmed.filter((each) => each.mark <= mark);
    this.#applied = done.at(-1)?.position ?? this.#applied;
    this.#unconfirmed = this.#unconfirmed.slice(done.length);
    for (const { changedAt } of done) if (changedAt !== undefined) this.#options.onApplied(changedAt);
  }

  /** What all workers have applied. */
  get applied(): TablePosition | null {
    return this.#applied;
  }

  /** What this node serves; undefined before the first table. */
  get placed(): PositionedTable | undefined {
    return this.#position === null ? undefined : { table: this.#table.part, position: this.#position };
  }

  /** A large change is being taken in: of those who share a listener some may not be here yet. */
  get isPartial(): boolean {
    return this.#isPartial;
  }

  get nodeEntry(): NodeEntry | undefined {
    const entry = this.#table.part.entries.get(nodeId(this.#options.node));
    return entry?.kind === 'node' ? entry : undefined;
  }

  /** All at once, for a worker that starts. */
  commandForNewWorker(): WorkerCommand {
    const changes = [...this.#table.part.entries.values()].map((entry): Change => ({ kind: 'put', entry }));
    const slots = [...this.#slotsByServiceUid].map(([uid, { slot }]) => [uid, slot] as const);
    return { kind: 'table', changes, slots, limits: this.limits.allRows(), isFirst: true };
  }

  #enqueue(forWhat: (backlog: PendingChanges) => void): void {
    const isAwaited = !this.#pending.isEmpty;
    forWhat(this.#pending);
    if (!isAwaited) this.#applyQueue.add(() => this.#applyPending());
  }

  #applyPending(): Iterable<void> {
    const next = this.#pending.take();
    if (next === undefined) return [];
    const { table, revision, changes } = next;
    return this.#apply(
      changes === undefined ? this.#table.replace(table) : this.#table.patch(changes, table),
      revision,
    );
  }

  /**
   * In steps, between which the thread may do what else is due: workers and listeners have the first thousands of Services while the
   * others are still to come.
   */
  *#apply(changes: readonly Change[], { position, changedAt }: AppliedRevision): Iterable<void> {
    const { pool, slots } = this.#options;
    // Into nothing: nobody is asked for a name until the listeners that are shared are open, which wait for the last part. So who
    // bears a wildcard need not come in one go with the thousands whose names are under it.
    const holders = this.#position === null ? [] : movedResources(this.matcher, changes);
    const { assigned, left } = this.#assignSlots(changes);
    const limits = this.limits.apply(changes, this.#table.part.entries);
    const order: TableCommand = { kind: 'table', changes, slots: assigned, limits: limits.rows, holders };
    const isFirst = this.#position === null;
    this.#position = position;
    this.#isPartial = true;
    for (const part of splitTable(isFirst ? { ...order, isFirst } : order)) {
      this.#applyPart(part);
      yield;
    }
    this.#isPartial = false;
    this.#options.onRoutesChanged([]);
    const mark = pool().mark();
    this.limits.release(limits.releasedOwners, mark);
    for (const owner of left) slots.release(owner, mark);
    this.#unconfirmed.push({ mark, position, ...(changedAt === undefined ? {} : { changedAt }) });
  }

  #applyPart(order: TableCommand): void {
    const { pool, onRoutesChanged } = this.#options;
    const keys = patchMatcher(this.matcher, order.changes);
    if (order.changes.length > 0 || order.slots.length > 0 || order.limits?.length) pool().post(order);
    onRoutesChanged(keys);
  }

  #assignSlots(changes: readonly Change[]): { readonly assigned: [string, number][]; readonly left: SlotOwner[] } {
    const assigned: [string, number][] = [];
    const left: SlotOwner[] = [];
    for (const change of changes) {
      const uid = serviceUidOf(change);
      if (uid === undefined) continue;
      const before = this.#slotsByServiceUid.get(uid);
      const service = change.kind === 'put' && change.entry.kind === 'service' ? change.entry : undefined;
      const now = service && this.#slotFor(service, before?.owner);
      if (now?.slot === before?.slot) continue;
      if (before !== undefined) left.push(before.owner);
      if (now === undefined) this.#slotsByServiceUid.delete(uid);
      assigned.push([uid, now?.slot ?? UNROUTED_SLOT]);
    }
    return { assigned, left };
  }

  #slotFor(service: ServiceEntry, before: SlotOwner | undefined): { readonly slot: number } {
    const { slots, pool } = this.#options;
    // While its tenant is in dispute a Service that still serves is counted for the one who had it.
    const owner: SlotOwner = {
      service: service.uid,
      tenant: service.tenant ?? before?.tenant ?? '',
      namespace: service.namespace,
      name: service.name,
    };
    const { index, grows } = slots.assign(owner);
    if (grows) pool().grow();
    this.#slotsByServiceUid.set(service.uid, { owner, slot: index });
    return { slot: index };
  }
}

const SERVICE_PREFIX = 'service/';

function serviceUidOf(change: Change): string | undefined {
  if (change.kind === 'put') return change.entry.kind === 'service' ? change.entry.uid : undefined;
  return change.id.startsWith(SERVICE_PREFIX) ? change.id.slice(SERVICE_PREFIX.length) : undefined;
}

/** Heartbeats and cut-offs wait for no more than this. */
const MAX_SLICE_MS = 10;

/** Does things one after the other, each in the steps that it says itself, and only so long in one turn of the event loop. */
export class TimeSlicedQueue {
  readonly #now: () => number;
  #pending: (() => Iterable<void>)[] = [];
  #running: Iterator<void> | undefined;
  /** It goes on in a turn to come. */
  #isScheduled = false;

  /** Milliseconds that never go back. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Done when this returns, if none is under way and it is short. */
  add(begin: () => Iterable<void>): void {
    this.#pending.push(begin);
    if (!this.#isScheduled) this.#run();
  }

  readonly #run = (): void => {
    this.#isScheduled = false;
    const endsAt = this.#now() + MAX_SLICE_MS;
    do {
      this.#running ??= this.#pending.shift()?.()[Symbol.iterator]();
      if (this.#running === undefined) return;
      if (this.#running.next().done === true) this.#running = undefined;
    } while (this.#now() < endsAt);
    this.#isScheduled = this.#running !== undefined || this.#pending.length > 0;
    if (this.#isScheduled) setImmediate(this.#run);
  };
}
