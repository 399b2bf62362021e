// Who is counted in which slot, and what all workers together have counted there. Values are cumulative for the life of
// this proxy and never go back: not when a worker dies, not when a slot changes hands. Only a new life counts from 0.
import { type SlotReading, slotKey } from '@weir/model/data-plane';
import {
  ACTIVE,
  COLUMN_COUNT,
  CONNECTIONS,
  counterAt,
  counterRow,
  createCounterBlock,
  outcomeColumn,
  RECEIVED,
  REQUESTS,
  ROWS_PER_BLOCK,
  SENT,
  UNROUTED_SLOT,
} from './counters.ts';

export interface SlotOwner {
  /** UID of the Service. */
  readonly service: string;
  /** Empty: in dispute since before this proxy started; nobody can be billed for it. */
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
}

/** So many former owners are remembered, in some 25 MB: years of a quiet node, days of one whose Services come and go. */
const MAX_FORMER_OWNERS = 65_536;

const ZERO_COUNTERS = new Float64Array(COLUMN_COUNT);

interface Slot {
  readonly index: number;
  readonly owner: SlotOwner;
  /** A row of `#bases`: counted in no slab of a living worker; below zero where these still hold what an earlier owner counted. */
  readonly base: Float64Array;
  /** The mark after which no new connection is counted here; undefined: in use. */
  releasedAtMark: number | undefined;
}

export class SlotRegistry {
  readonly #blocksByWorker = new Map<number, readonly SharedArrayBuffer[]>();
  readonly #slots = new Map<string, Slot>();
  readonly #freeIndexes: number[] = [];
  /** As many as each worker has. An array for each of thousands of slots would be larger than what is in it. */
  readonly #baseBlocks = [createCounterBlock()];
  /**
   * What was counted in slots that are given away, by slot key. The ledger knows such a pair by one cumulative value per
   * life, and the pair may come back in this life: counted from 0 it would be lost up to the former value. So none is
   * forgotten alone; when they are too many, all are, with the life that the ledger knows them by.
   */
  readonly #formerTotals = new Map<string, Float64Array>();
  readonly #unrouted = new Float64Array(COLUMN_COUNT);
  readonly #maxFormerOwners: number;
  #nextIndex = UNROUTED_SLOT + 1;

  constructor({ mostFormer = MAX_FORMER_OWNERS }: { readonly mostFormer?: number } = {}) {
    this.#maxFormerOwners = mostFormer;
  }

  createBlock(): SharedArrayBuffer {
    return createCounterBlock();
  }

  /** As many as are in use, for a worker that starts. */
  createBlocks(): SharedArrayBuffer[] {
    return this.#baseBlocks.map(createCounterBlock);
  }

  /** `slabs` may grow later. */
  addWorker(id: number, slabs: readonly SharedArrayBuffer[]): void {
    this.#blocksByWorker.set(id, slabs);
  }

  /** Its connections are gone with it. */
  removeWorker(id: number): void {
    const slabs = this.#blocksByWorker.get(id) ?? [];
    this.#blocksByWorker.delete(id);
    for (const slot of this.#slots.values()) addFinalCounts(slot.base, counterRow(slabs, slot.index));
    addFinalCounts(this.#unrouted, counterRow(slabs, UNROUTED_SLOT));
  }

  /** The slot of a Service and its tenant; `grows` when the workers need one slab more before they hear of it. */
  assign(owner: SlotOwner): { readonly index: number; readonly grows: boolean } {
    const key = slotKey(owner);
    const known = this.#slots.get(key);
    if (known !== undefined) {
      known.releasedAtMark = undefined;
      return { index: known.index, grows: false };
    }
    const given = this.#freeIndexes.pop();
    const index = given ?? this.#nextIndex++;
    const grows = index >= this.#baseBlocks.length * ROWS_PER_BLOCK;
    if (grows) this.#baseBlocks.push(createCounterBlock());
    const base = counterRow(this.#baseBlocks, index);
    base.set(this.#formerTotals.get(key) ?? ZERO_COUNTERS);
    this.#formerTotals.delete(key);
    // One that nobody had before is 0 in all slabs.
    if (given !== undefined) this.#forEachRow(index, (row) => addRow(base, row, -1));
    this.#slots.set(key, { index, owner, base, releasedAtMark: undefined });
    return { index, grows };
  }

  /** Whether somebody is counted under this slot key. */
  has(key: string): boolean {
    return this.#slots.has(key);
  }

  /** From `mark` on no new connection is counted there. */
  release(owner: Pick<SlotOwner, 'service' | 'tenant'>, mark: number): void {
    const slot = this.#slots.get(slotKey(owner));
    if (slot !== undefined) slot.releasedAtMark ??= mark;
  }

  /** Gives slots away that no connection refers to and whose last value is known to the ledger; returns their keys. */
  freeReleased(reached: number, isAcknowledged: (owner: SlotOwner, reading: SlotReading) => boolean): string[] {
    const freed: string[] = [];
    for (const [key, slot] of this.#slots) {
      if (slot.releasedAtMark === undefined || slot.releasedAtMark > reached) continue;
      const total = this.#totalOf(slot);
      if (total[ACTIVE] !== 0 || !isAcknowledged(slot.owner, readingOf(slot.owner, total))) continue;
      this.#slots.delete(key);
      if (total.some((count) => count !== 0)) this.#formerTotals.set(key, total);
      this.#freeIndexes.push(slot.index);
      freed.push(key);
    }
    return freed;
  }

  /** It is time for a new life: too many former owners are remembered for the sake of this one. */
  get isFull(): boolean {
    return this.#formerTotals.size > this.#maxFormerOwners;
  }

  /** From here on counts from 0, but for the connections that are open; returns what was counted until then, no byte more. */
  startIncarnation(): SlotReading[] {
    this.#formerTotals.clear();
    const readings: SlotReading[] = [];
    for (const slot of this.#slots.values()) {
      const total = this.#totalOf(slot);
      const open = total[ACTIVE] as number;
      readings.push(readingOf(slot.owner, total));
      addRow(slot.base, total, -1);
      slot.base[ACTIVE] = (slot.base[ACTIVE] as number) + open;
    }
    return readings;
  }

  /** All slots, with their owner's row of totals. */
  *totals(): Iterable<{ readonly owner: SlotOwner; readonly total: Float64Array }> {
    for (const slot of this.#slots.values()) yield { owner: slot.owner, total: this.#totalOf(slot) };
  }

  unroutedTotal(): Float64Array {
    const total = this.#unrouted.slice();
    this.#forEachRow(UNROUTED_SLOT, (row) => addRow(total, row, 1));
    return total;
  }

  /** Of all slots these columns of their owner's totals, in the order asked for: of thousands of slots a row of each is much to make. */
  *counts(columns: readonly number[]): Iterable<{ readonly owner: SlotOwner; readonly counts: readonly number[] }> {
    const workers = this.#viewBlocks();
    for (const slot of this.#slots.values()) {
      yield { owner: slot.owner, counts: columns.map((column) => countOf(slot, column, workers)) };
    }
  }

  /** Of those slots in which something was counted. It is asked once a second, and of thousands most have nothing. */
  readings(): SlotReading[] {
    const readings: SlotReading[] = [];
    const workers = this.#viewBlocks();
    for (const slot of this.#slots.values()) {
      const receivedBytes = countOf(slot, RECEIVED, workers);
      const sentBytes = countOf(slot, SENT, workers);
      const connections = countOf(slot, CONNECTIONS, workers);
      const requests = countOf(slot, REQUESTS, workers);
      if (receivedBytes + sentBytes + connections + requests === 0) continue;
      readings.push({ ...slot.owner, counters: { receivedBytes, sentBytes, connections, requests } });
    }
    return readings;
  }

  /**
   * Connections open now, those included of whom it is not known yet whom they want. It is asked with every heartbeat, and reads
   * one cell of each slot.
   */
  activeConnections(): number {
    const workers = this.#viewBlocks();
    let active = this.#unrouted[ACTIVE] as number;
    for (const cells of workers) active += counterAt(cells, UNROUTED_SLOT, ACTIVE);
    for (const slot of this.#slots.values()) active += countOf(slot, ACTIVE, workers);
    return active;
  }

  #viewBlocks(): WorkerCounterViews {
    return [...this.#blocksByWorker.values()].map((slabs) => slabs.map((slab) => new Float64Array(slab)));
  }

  #totalOf(slot: Slot): Float64Array {
    const total = slot.base.slice();
    this.#forEachRow(slot.index, (row) => addRow(total, row, 1));
    return total;
  }

  #forEachRow(index: number, see: (row: Float64Array) => void): void {
    for (const slabs of this.#blocksByWorker.values()) {
      if (index < slabs.length * ROWS_PER_BLOCK) see(counterRow(slabs, index));
    }
  }
}

/** Views of all slabs, for each worker. */
type WorkerCounterViews = readonly (readonly Float64Array[])[];

function countOf({ base, index }: Slot, column: number, workers: WorkerCounterViews): number {
  let count = base[column] as number;
  for (const cells of workers) count += counterAt(cells, index, column);
  return count;
}

export function readingOf(owner: SlotOwner, total: Float64Array): SlotReading {
  return {
    ...owner,
    counters: {
      receivedBytes: total[RECEIVED] as number,
      sentBytes: total[SENT] as number,
      connections: total[CONNECTIONS] as number,
      requests: total[REQUESTS] as number,
    },
  };
}

function addRow(sum: Float64Array, row: Float64Array, sign: 1 | -1): void {
  for (let column = 0; column < COLUMN_COUNT; column += 1) {
    sum[column] = (sum[column] as number) + sign * (row[column] as number);
  }
}

/** What a dead worker counted. Its open connections ended with it, as `internal`. */
function addFinalCounts(base: Float64Array, row: Float64Array): void {
  const open = row[ACTIVE] as number;
  addRow(base, row, 1);
  base[ACTIVE] = (base[ACTIVE] as number) - open;
  const column = outcomeColumn('internal');
  base[column] = (base[column] as number) + open;
}
