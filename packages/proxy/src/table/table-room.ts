// The table of this node as the main thread holds it: what followers bring goes to the matcher, to the workers as small
// changes, and to the listeners; and what all workers have applied is known.
import {
  type Change,
  createMatcher,
  EMPTY_TABLE,
  holdersOf,
  type Matcher,
  type NodeEntry,
  nodeId,
  type Position,
  patchMatcher,
  type RouteKey,
  type RoutingTable,
  type ServiceEntry,
} from '@weir/model/data-plane';
import type { PlacedTable, TakenRevision } from '@weir/store';
import type { LimitBook } from '../admit/limit-book.ts';
import { LimitRoom } from '../admit/limit-room.ts';
import { UNROUTED_SLOT } from '../counters/columns.ts';
import type { SlotBook, SlotOwner } from '../counters/slot-book.ts';
import type { Order, TableOrder } from '../worker/messages.ts';
import { monotonicMs } from '../worker/monotonic.ts';
import { inParts } from '../workers/table-pieces.ts';
import type { WorkerPool } from '../workers/worker-pool.ts';
import { Backlog } from './backlog.ts';
import { NodeTable } from './node-table.ts';
import { TurnTaker } from './turn-taker.ts';

export interface TableRoomOptions {
  readonly node: string;
  readonly slots: SlotBook;
  readonly limits: LimitBook;
  readonly pool: () => Pick<WorkerPool, 'post' | 'mark' | 'grow'>;
  /** These routes have changed; after the last of a change once more, with none. */
  readonly onRoutes: (keys: readonly RouteKey[]) => void;
  /** All workers serve as the world has been since then, milliseconds since the epoch. */
  readonly onPropagated: (changedAt: number) => void;
  /** By which turns are measured, in milliseconds that never go back. */
  readonly turnClock?: () => number;
}

export class TableRoom {
  readonly matcher: Matcher;
  readonly limits: LimitRoom;
  readonly #options: TableRoomOptions;
  readonly #table: NodeTable;
  readonly #takes: TurnTaker;
  /** What the next take brings. */
  readonly #backlog = new Backlog();
  /** Where each Service is counted now. */
  readonly #owners = new Map<string, { readonly owner: SlotOwner; readonly slot: number }>();
  #position: Position | null = null;
  #isPartial = false;
  #sent: (TakenRevision & { readonly mark: number })[] = [];
  #applied: Position | null = null;

  constructor(options: TableRoomOptions) {
    this.#options = options;
    this.#takes = new TurnTaker(options.turnClock ?? monotonicMs);
    this.#table = new NodeTable(options.node);
    this.limits = new LimitRoom(options.limits);
    this.matcher = createMatcher(EMPTY_TABLE, options.node);
  }

  /** A whole table, of the fleet or of the copy on the disk. */
  replace(table: RoutingTable, position: Position): void {
    this.#wait((backlog) => backlog.replace(table, { position }));
  }

  /** `table` is the one before with `changes` made. */
  patch(changes: readonly Change[], table: RoutingTable, revision: TakenRevision): void {
    this.#wait((backlog) => backlog.add(changes, table, revision));
  }

  /** The workers have reached this mark. */
  reached(mark: number): void {
    this.#options.limits.reached(mark);
    const done = this.#sent.filter((each) => each.mark <= mark);
    this.#applied = done.at(-1)?.position ?? this.#applied;
    this.#sent = this.#sent.slice(done.length);
    for (const { changedAt } of done) if (changedAt !== undefined) this.#options.onPropagated(changedAt);
  }

  /** What all workers have applied. */
  get applied(): Position | null {
    return this.#applied;
  }

  /** What this node serves; undefined before the first table. */
  get placed(): PlacedTable | undefined {
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
  welcome(): Order {
    const changes = [...this.#table.part.entries.values()].map((entry): Change => ({ kind: 'put', entry }));
    const slots = [...this.#owners].map(([uid, { slot }]) => [uid, slot] as const);
    return { kind: 'table', changes, slots, limits: this.limits.rows(), isFirst: true };
  }

  #wait(forWhat: (backlog: Backlog) => void): void {
    const isAwaited = !this.#backlog.isEmpty;
    forWhat(this.#backlog);
    if (!isAwaited) this.#takes.add(() => this.#takeBacklog());
  }

  #takeBacklog(): Iterable<void> {
    const next = this.#backlog.take();
    if (next === undefined) return [];
    const { table, revision, changes } = next;
    return this.#take(changes === undefined ? this.#table.replace(table) : this.#table.patch(changes, table), revision);
  }

  /**
   * In steps, between which the thread may do what else is due: workers and listeners have the first thousands of Services while the
   * others are still to come.
   */
  *#take(changes: readonly Change[], { position, changedAt }: TakenRevision): Iterable<void> {
    const { pool, slots } = this.#options;
    // Into nothing: nobody is asked for a name until the listeners that are shared are open, which wait for the last part. So who
    // bears a wildcard need not come in one go with the thousands whose names are under it.
    const holders = this.#position === null ? [] : holdersOf(this.matcher, changes);
    const { assigned, left } = this.#assign(changes);
    const limits = this.limits.take(changes, this.#table.part.entries);
    const order: TableOrder = { kind: 'table', changes, slots: assigned, limits: limits.rows, holders };
    const isFirst = this.#position === null;
    this.#position = position;
    this.#isPartial = true;
    for (const part of inParts(isFirst ? { ...order, isFirst } : order)) {
      this.#takePart(part);
      yield;
    }
    this.#isPartial = false;
    this.#options.onRoutes([]);
    const mark = pool().mark();
    this.limits.release(limits.left, mark);
    for (const owner of left) slots.release(owner, mark);
    this.#sent.push({ mark, position, ...(changedAt === undefined ? {} : { changedAt }) });
  }

  #takePart(order: TableOrder): void {
    const { pool, onRoutes } = this.#options;
    const keys = patchMatcher(this.matcher, order.changes);
    if (order.changes.length > 0 || order.slots.length > 0 || order.limits?.length) pool().post(order);
    onRoutes(keys);
  }

  #assign(changes: readonly Change[]): { readonly assigned: [string, number][]; readonly left: SlotOwner[] } {
    const assigned: [string, number][] = [];
    const left: SlotOwner[] = [];
    for (const change of changes) {
      const uid = serviceUidOf(change);
      if (uid === undefined) continue;
      const before = this.#owners.get(uid);
      const service = change.kind === 'put' && change.entry.kind === 'service' ? change.entry : undefined;
      const now = service && this.#place(service, before?.owner);
      if (now?.slot === before?.slot) continue;
      if (before !== undefined) left.push(before.owner);
      if (now === undefined) this.#owners.delete(uid);
      assigned.push([uid, now?.slot ?? UNROUTED_SLOT]);
    }
    return { assigned, left };
  }

  #place(service: ServiceEntry, before: SlotOwner | undefined): { readonly slot: number } {
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
    this.#owners.set(service.uid, { owner, slot: index });
    return { slot: index };
  }
}

const SERVICE_PREFIX = 'service/';

function serviceUidOf(change: Change): string | undefined {
  if (change.kind === 'put') return change.entry.kind === 'service' ? change.entry.uid : undefined;
  return change.id.startsWith(SERVICE_PREFIX) ? change.id.slice(SERVICE_PREFIX.length) : undefined;
}
