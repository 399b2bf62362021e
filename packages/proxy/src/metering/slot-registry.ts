// Assigns counter slots to Services, and adds up the counts of all workers in each slot. Totals are kept for the whole
// incarnation, even if a worker ends or a slot is reused. Only a new incarnation starts from 0.
import {
  type Counters,
  countersFrom,
  hasIncrease,
  type RefusalCounts,
  type SlotReading,
  slotKey,
  ZERO_COUNTERS,
} from '@weir/model/data-plane';
import {
  ACTIVE,
  addToCounter,
  CODE_CLASS_COLUMNS,
  COLUMN_COUNT,
  CONNECTIONS,
  counterAt,
  counterRow,
  createCounterBlock,
  outcomeColumn,
  RECEIVED,
  REFUSAL_COLUMNS,
  REFUSAL_REASONS,
  ROWS_PER_BLOCK,
  SENT,
  UNACKNOWLEDGED,
  UNROUTED_SLOT,
} from './counters.ts';

export interface SlotOwner {
  /** UID of the Service. */
  readonly service: string;
  /**
   * The tenant. Empty if two policies claimed the Service's namespace when this proxy started. Usage without a tenant
   * cannot be billed.
   */
  readonly tenant: string;
  readonly namespace: string;
  readonly name: string;
}

/**
 * The maximum number of former owners whose totals are kept. The ledger keeps a base of each former owner until the
 * incarnation ends.
 */
const MAX_FORMER_OWNERS = 4_096;

const ZERO_ROW = new Float64Array(COLUMN_COUNT);
/** The columns that `countersOf` reads. */
const REPORTED_COLUMNS: readonly number[] = [RECEIVED, SENT, CONNECTIONS, ...CODE_CLASS_COLUMNS];
/** The position of the number of requests in the list that `countersFrom` takes. */
const REQUESTS_AT = 3;

interface Slot {
  /** The `slotKey` of the owner. Kept, because V8 looks up each new key string in a table of all strings. */
  readonly key: string;
  readonly index: number;
  readonly owner: SlotOwner;
  /**
   * The slot's row in `#baseBlocks`. The total of the slot is the sum of this row and the rows of running workers. This
   * row holds the counts of ended workers and the owner's former total. The counts of the slot's previous owner, which
   * running workers still have in their rows, are subtracted.
   */
  readonly base: Float64Array;
  /** Workers that have reached this mark count no new connection in the slot. Undefined while the slot is in use. */
  releasedAtMark: number | undefined;
}

export class SlotRegistry {
  readonly #blocksByWorker = new Map<number, readonly SharedArrayBuffer[]>();
  readonly #slots = new Map<string, Slot>();
  readonly #freeIndexes: number[] = [];
  /**
   * The base counts of all slots, in as many blocks as each worker has. A separate array for each slot would take more
   * memory than the counters in the array.
   */
  readonly #baseBlocks = [createCounterBlock()];
  /**
   * Totals of owners whose slots were freed, by slot key. The ledger keeps one cumulative value per owner and
   * incarnation. If an owner returned and counted from 0, its usage up to the former total would be lost. Totals are
   * therefore dropped only when a new incarnation starts, and all at once.
   */
  readonly #formerTotals = new Map<string, Float64Array>();
  readonly #unrouted = new Float64Array(COLUMN_COUNT);
  readonly #maxFormerOwners: number;
  #nextIndex = UNROUTED_SLOT + 1;

  constructor({ maxFormerOwners = MAX_FORMER_OWNERS }: { readonly maxFormerOwners?: number } = {}) {
    this.#maxFormerOwners = maxFormerOwners;
  }

  /** Creates the counter blocks of a worker that starts. Every worker has the same number of blocks. */
  createBlocks(): SharedArrayBuffer[] {
    return this.#baseBlocks.map(createCounterBlock);
  }

  /** Adds a worker. The caller may append more blocks to `blocks` later. */
  addWorker(id: number, blocks: readonly SharedArrayBuffer[]): void {
    this.#blocksByWorker.set(id, blocks);
  }

  /** Removes a worker that has ended. Keeps the worker's counts, and counts its open connections as ended. */
  removeWorker(id: number): void {
    const blocks = this.#blocksByWorker.get(id) ?? [];
    this.#blocksByWorker.delete(id);
    for (const slot of this.#slots.values()) addFinalCounts(slot.base, counterRow(blocks, slot.index));
    addFinalCounts(this.#unrouted, counterRow(blocks, UNROUTED_SLOT));
  }

  /**
   * Returns the slot of a Service and its tenant. Assigns a slot first if they have none. `grows` is true if each
   * worker needs another block before it uses the slot.
   */
  assign(owner: SlotOwner): { readonly index: number; readonly grows: boolean } {
    const key = slotKey(owner);
    const known = this.#slots.get(key);
    if (known !== undefined) {
      known.releasedAtMark = undefined;
      return { index: known.index, grows: false };
    }
    const reused = this.#freeIndexes.pop();
    const index = reused ?? this.#nextIndex++;
    const grows = index >= this.#baseBlocks.length * ROWS_PER_BLOCK;
    if (grows) this.#baseBlocks.push(createCounterBlock());
    const base = counterRow(this.#baseBlocks, index);
    base.set(this.#formerTotals.get(key) ?? ZERO_ROW);
    this.#formerTotals.delete(key);
    // Only a reused index needs this subtraction, because the rows of a new index are 0.
    if (reused !== undefined) this.#forEachRow(index, (row) => addRow(base, row, -1));
    this.#slots.set(key, { key, index, owner, base, releasedAtMark: undefined });
    return { index, grows };
  }

  /** Reports whether the owner with this slot key has a slot. */
  has(key: string): boolean {
    return this.#slots.has(key);
  }

  /** Releases the slot of an owner. Workers that have reached `mark` count no new connection in the slot. */
  release(owner: Pick<SlotOwner, 'service' | 'tenant'>, mark: number): void {
    const slot = this.#slots.get(slotKey(owner));
    if (slot !== undefined) slot.releasedAtMark ??= mark;
  }

  /**
   * Frees each released slot that has no open connection and whose usage the ledger has acknowledged. `reached` is the
   * highest mark that all workers have reached. Returns the keys of the freed slots.
   */
  freeReleased(reached: number, isAcknowledged: (owner: SlotOwner, reading: SlotReading) => boolean): string[] {
    const freed: string[] = [];
    for (const [key, slot] of this.#slots) {
      if (slot.releasedAtMark === undefined || slot.releasedAtMark > reached) continue;
      const total = this.#totalOf(slot);
      if (total[ACTIVE] !== 0 || !isAcknowledged(slot.owner, readingOf(slot, countersOf(total)))) continue;
      this.#slots.delete(key);
      if (total.some((count) => count !== 0)) this.#formerTotals.set(key, total);
      this.#freeIndexes.push(slot.index);
      freed.push(key);
    }
    return freed;
  }

  /** Whether a new incarnation should start, because the totals of too many former owners are kept. */
  get isFull(): boolean {
    return this.#formerTotals.size > this.#maxFormerOwners;
  }

  /**
   * Resets all totals to 0, except the open connections and their unacknowledged bytes. Returns the readings of the
   * slots before the reset.
   */
  startIncarnation(): SlotReading[] {
    this.#formerTotals.clear();
    const readings: SlotReading[] = [];
    for (const slot of this.#slots.values()) {
      const total = this.#totalOf(slot);
      readings.push(readingOf(slot, countersOf(total)));
      addRow(slot.base, total, -1);
      for (const column of [ACTIVE, UNACKNOWLEDGED]) addToCounter(slot.base, column, total[column] as number);
    }
    return readings;
  }

  /** Yields the owner and the row of totals of each slot. */
  *totals(): Iterable<{ readonly owner: SlotOwner; readonly total: Float64Array }> {
    for (const slot of this.#slots.values()) yield { owner: slot.owner, total: this.#totalOf(slot) };
  }

  unroutedTotal(): Float64Array {
    const total = this.#unrouted.slice();
    this.#forEachRow(UNROUTED_SLOT, (row) => addRow(total, row, 1));
    return total;
  }

  /** Yields only the given columns of each slot's totals. Cheaper than `totals` if there are thousands of slots. */
  *counts(columns: readonly number[]): Iterable<{ readonly owner: SlotOwner; readonly counts: readonly number[] }> {
    const workers = this.#viewBlocks();
    for (const slot of this.#slots.values()) {
      yield { owner: slot.owner, counts: columns.map((column) => countOf(slot, column, workers)) };
    }
  }

  /**
   * Returns the readings of all slots that have usage. Skips slots without usage, because this method is called every
   * second, and there may be thousands of slots, most of them without usage.
   */
  readings(): SlotReading[] {
    const readings: SlotReading[] = [];
    const workers = this.#viewBlocks();
    const total = new Float64Array(COLUMN_COUNT);
    const refusals = new RefusalSum();
    for (const slot of this.#slots.values()) {
      for (const column of REPORTED_COLUMNS) total[column] = countOf(slot, column, workers);
      refusals.clear();
      refusals.add(slot.base, 0);
      for (const cells of workers) addRefusalsOf(slot.index, cells, refusals);
      const reading = readingOf(slot, countersOf(total, refusals));
      if (hasIncrease(ZERO_COUNTERS, reading.counters)) readings.push(reading);
    }
    return readings;
  }

  /** Returns the number of open connections, including connections that are not routed yet. */
  activeConnections(): number {
    const workers = this.#viewBlocks();
    let active = this.#unrouted[ACTIVE] as number;
    for (const cells of workers) active += counterAt(cells, UNROUTED_SLOT, ACTIVE);
    for (const slot of this.#slots.values()) active += countOf(slot, ACTIVE, workers);
    return active;
  }

  #viewBlocks(): WorkerCounterViews {
    return [...this.#blocksByWorker.values()].map((blocks) => blocks.map((block) => new Float64Array(block)));
  }

  #totalOf(slot: Slot): Float64Array {
    const total = slot.base.slice();
    this.#forEachRow(slot.index, (row) => addRow(total, row, 1));
    return total;
  }

  #forEachRow(index: number, visit: (row: Float64Array) => void): void {
    for (const blocks of this.#blocksByWorker.values()) {
      if (index < blocks.length * ROWS_PER_BLOCK) visit(counterRow(blocks, index));
    }
  }
}

/** For each worker, the views of its counter blocks. */
type WorkerCounterViews = readonly (readonly Float64Array[])[];

function countOf({ base, index }: Slot, column: number, workers: WorkerCounterViews): number {
  let count = base[column] as number;
  for (const cells of workers) count += counterAt(cells, index, column);
  return count;
}

function readingOf({ key, owner }: Slot, counters: Counters): SlotReading {
  const { service, tenant, namespace, name } = owner;
  return { key, service, tenant, namespace, name, counters };
}

/** Returns the counters in a row of totals. By default `refusals` are the refusals in the row. */
export function countersOf(total: Float64Array, refusals: RefusalSum = refusalsIn(total)): Counters {
  const values = [total[RECEIVED] as number, total[SENT] as number, total[CONNECTIONS] as number, 0];
  for (const column of CODE_CLASS_COLUMNS) {
    const count = total[column] as number;
    values[REQUESTS_AT] = (values[REQUESTS_AT] as number) + count;
    values.push(count);
  }
  return countersFrom(values, refusals.byReason());
}

function refusalsIn(total: Float64Array): RefusalSum {
  const refusals = new RefusalSum();
  refusals.add(total, 0);
  return refusals;
}

/** Adds the refusals that a worker has counted in a slot. A worker may not have the slot's block yet. */
function addRefusalsOf(slot: number, blocks: readonly Float64Array[], refusals: RefusalSum): void {
  const cells = blocks[Math.floor(slot / ROWS_PER_BLOCK)];
  if (cells !== undefined) refusals.add(cells, (slot % ROWS_PER_BLOCK) * COLUMN_COUNT);
}

/**
 * Adds up refusals by reason. One object is reused for all slots, because every slot is read each second and has more
 * than forty columns of refusals, nearly all of them 0.
 */
class RefusalSum {
  readonly #counts = new Float64Array(REFUSAL_COLUMNS.length);

  clear(): void {
    this.#counts.fill(0);
  }

  /** Adds the row that begins at `offset`. */
  add(cells: Float64Array, offset: number): void {
    for (let index = 0; index < REFUSAL_COLUMNS.length; index += 1) {
      const count = cells[offset + (REFUSAL_COLUMNS[index] as number)] as number;
      this.#counts[index] = (this.#counts[index] as number) + count;
    }
  }

  /** Returns the refusals by reason, or undefined if there are none. Adds up connections and requests of the same reason. */
  byReason(): RefusalCounts | undefined {
    let byReason: Record<string, number> | undefined;
    for (let index = 0; index < REFUSAL_COLUMNS.length; index += 1) {
      const count = this.#counts[index] as number;
      if (count === 0) continue;
      const reason = REFUSAL_REASONS[index] as string;
      byReason ??= {};
      byReason[reason] = (byReason[reason] ?? 0) + count;
    }
    return byReason;
  }
}

function addRow(sum: Float64Array, row: Float64Array, sign: 1 | -1): void {
  for (let column = 0; column < COLUMN_COUNT; column += 1) {
    sum[column] = (sum[column] as number) + sign * (row[column] as number);
  }
}

/**
 * Adds the counts of a worker that has ended to `base`. The open connections of the worker count as ended with the
 * outcome `internal`, and their unacknowledged bytes as sent.
 */
function addFinalCounts(base: Float64Array, row: Float64Array): void {
  addRow(base, row, 1);
  move(base, row[ACTIVE] as number, { from: ACTIVE, to: outcomeColumn('internal') });
  move(base, row[UNACKNOWLEDGED] as number, { from: UNACKNOWLEDGED, to: SENT });
}

function move(row: Float64Array, amount: number, { from, to }: { readonly from: number; readonly to: number }): void {
  addToCounter(row, from, -amount);
  addToCounter(row, to, amount);
}
