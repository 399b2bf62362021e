// Who is counted in which slot, and what all workers together have counted there. Values are cumulative for the life of
// this proxy and never go back: not when a worker dies, not when a slot changes hands. Only a new life counts from 0.
import { type SlotReading, slotKey } from '@weir/model/data-plane';
import {
  ACTIVE,
  COLUMNS,
  CONNECTIONS,
  cellOf,
  createSlab,
  outcomeColumn,
  RECEIVED,
  REQUESTS,
  ROWS_PER_SLAB,
  rowOf,
  SENT,
  UNROUTED_SLOT,
} from './columns.ts';

export interface SlotOwner {
  /** UID of the Service. */
  readonly service: string;
  /** Empty: in dispute since before this proxy started; nobody can be billed for it. */
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
}

/** So many former owners are remembered, in some 25 MB: years of a quiet node, days of one whose Services come and go. */
const MOST_FORMER = 65_536;

const NOTHING = new Float64Array(COLUMNS);

interface Slot {
  readonly index: number;
  readonly owner: SlotOwner;
  /** A row of `#bases`: counted in no slab of a living worker; below zero where these still hold what an earlier owner counted. */
  readonly base: Float64Array;
  /** The mark after which no new connection is counted here; undefined: in use. */
  leavingAt: number | undefined;
}

export class SlotBook {
  readonly #slabs = new Map<number, readonly SharedArrayBuffer[]>();
  readonly #slots = new Map<string, Slot>();
  readonly #free: number[] = [];
  /** As many as each worker has. An array for each of thousands of slots would be larger than what is in it. */
  readonly #bases = [createSlab()];
  /**
   * What was counted in slots that are given away, by slot key. The ledger knows such a pair by one cumulative value per
   * life, and the pair may come back in this life: counted from 0 it would be lost up to the former value. So none is
   * forgotten alone; when they are too many, all are, with the life that the ledger knows them by.
   */
  readonly #former = new Map<string, Float64Array>();
  readonly #unrouted = new Float64Array(COLUMNS);
  readonly #mostFormer: number;
  #next = UNROUTED_SLOT + 1;

  constructor({ mostFormer = MOST_FORMER }: { readonly mostFormer?: number } = {}) {
    this.#mostFormer = mostFormer;
  }

  newSlab(): SharedArrayBuffer {
    return createSlab();
  }

  /** As many as are in use, for a worker that starts. */
  newSlabs(): SharedArrayBuffer[] {
    return this.#bases.map(createSlab);
  }

  /** `slabs` may grow later. */
  addWorker(id: number, slabs: readonly SharedArrayBuffer[]): void {
    this.#slabs.set(id, slabs);
  }

  /** Its connections are gone with it. */
  removeWorker(id: number): void {
    const slabs = this.#slabs.get(id) ?? [];
    this.#slabs.delete(id);
    for (const slot of this.#slots.values()) inherit(slot.base, rowOf(slabs, slot.index));
    inherit(this.#unrouted, rowOf(slabs, UNROUTED_SLOT));
  }

  /** The slot of a Service and its tenant; `grows` when the workers need one slab more before they hear of it. */
  assign(owner: SlotOwner): { readonly index: number; readonly grows: boolean } {
    const key = slotKey(owner);
    const known = this.#slots.get(key);
    if (known !== undefined) {
      known.leavingAt = undefined;
      return { index: known.index, grows: false };
    }
    const given = this.#free.pop();
    const index = given ?? this.#next++;
    const grows = index >= this.#bases.length * ROWS_PER_SLAB;
    if (grows) this.#bases.push(createSlab());
    const base = rowOf(this.#bases, index);
    base.set(this.#former.get(key) ?? NOTHING);
    this.#former.delete(key);
    // One that nobody had before is 0 in all slabs.
    if (given !== undefined) this.#each(index, (row) => addTo(base, row, -1));
    this.#slots.set(key, { index, owner, base, leavingAt: undefined });
    return { index, grows };
  }

  /** Whether somebody is counted under this slot key. */
  has(key: string): boolean {
    return this.#slots.has(key);
  }

  /** From `mark` on no new connection is counted there. */
  release(owner: Pick<SlotOwner, 'service' | 'tenant'>, mark: number): void {
    const slot = this.#slots.get(slotKey(owner));
    if (slot !== undefined) slot.leavingAt ??= mark;
  }

  /** Gives slots away that no connection refers to and whose last value is known to the ledger; returns their keys. */
  free(reached: number, isAcknowledged: (owner: SlotOwner, reading: SlotReading) => boolean): string[] {
    const freed: string[] = [];
    for (const [key, slot] of this.#slots) {
      if (slot.leavingAt === undefined || slot.leavingAt > reached) continue;
      const total = this.#total(slot);
      if (total[ACTIVE] !== 0 || !isAcknowledged(slot.owner, readingOf(slot.owner, total))) continue;
      this.#slots.delete(key);
      if (total.some((count) => count !== 0)) this.#former.set(key, total);
      this.#free.push(slot.index);
      freed.push(key);
    }
    return freed;
  }

  /** It is time for a new life: too many former owners are remembered for the sake of this one. */
  get isFull(): boolean {
    return this.#former.size > this.#mostFormer;
  }

  /** From here on counts from 0, but for the connections that are open; returns what was counted until then, no byte more. */
  startAnew(): SlotReading[] {
    this.#former.clear();
    const readings: SlotReading[] = [];
    for (const slot of this.#slots.values()) {
      const total = this.#total(slot);
      const open = total[ACTIVE] as number;
      readings.push(readingOf(slot.owner, total));
      addTo(slot.base, total, -1);
      slot.base[ACTIVE] = (slot.base[ACTIVE] as number) + open;
    }
    return readings;
  }

  /** All slots, with their owner's row of totals. */
  *totals(): Iterable<{ readonly owner: SlotOwner; readonly total: Float64Array }> {
    for (const slot of this.#slots.values()) yield { owner: slot.owner, total: this.#total(slot) };
  }

  unrouted(): Float64Array {
    const total = this.#unrouted.slice();
    this.#each(UNROUTED_SLOT, (row) => addTo(total, row, 1));
    return total;
  }

  /** Of all slots these columns of their owner's totals, in the order asked for: of thousands of slots a row of each is much to make. */
  *counts(columns: readonly number[]): Iterable<{ readonly owner: SlotOwner; readonly counts: readonly number[] }> {
    const workers = this.#cells();
    for (const slot of this.#slots.values()) {
      yield { owner: slot.owner, counts: columns.map((column) => countOf(slot, column, workers)) };
    }
  }

  /** Of those slots in which something was counted. It is asked once a second, and of thousands most have nothing. */
  readings(): SlotReading[] {
    const readings: SlotReading[] = [];
    const workers = this.#cells();
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
  active(): number {
    const workers = this.#cells();
    let active = this.#unrouted[ACTIVE] as number;
    for (const cells of workers) active += cellOf(cells, UNROUTED_SLOT, ACTIVE);
    for (const slot of this.#slots.values()) active += countOf(slot, ACTIVE, workers);
    return active;
  }

  #cells(): WorkerCells {
    return [...this.#slabs.values()].map((slabs) => slabs.map((slab) => new Float64Array(slab)));
  }

  #total(slot: Slot): Float64Array {
    const total = slot.base.slice();
    this.#each(slot.index, (row) => addTo(total, row, 1));
    return total;
  }

  #each(index: number, see: (row: Float64Array) => void): void {
    for (const slabs of this.#slabs.values()) {
      if (index < slabs.length * ROWS_PER_SLAB) see(rowOf(slabs, index));
    }
  }
}

/** Views of all slabs, for each worker. */
type WorkerCells = readonly (readonly Float64Array[])[];

function countOf({ base, index }: Slot, column: number, workers: WorkerCells): number {
  let count = base[column] as number;
  for (const cells of workers) count += cellOf(cells, index, column);
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

function addTo(sum: Float64Array, row: Float64Array, sign: 1 | -1): void {
  for (let column = 0; column < COLUMNS; column += 1) {
    sum[column] = (sum[column] as number) + sign * (row[column] as number);
  }
}

/** What a dead worker counted. Its open connections ended with it, as `internal`. */
function inherit(base: Float64Array, row: Float64Array): void {
  const open = row[ACTIVE] as number;
  addTo(base, row, 1);
  base[ACTIVE] = (base[ACTIVE] as number) - open;
  const column = outcomeColumn('internal');
  base[column] = (base[column] as number) + open;
}
