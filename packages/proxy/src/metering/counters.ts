import { OUTCOMES, type Outcome } from './outcome.ts';

// The layout of the counters in shared memory: rows of doubles, one row per slot. A worker writes only its own slab,
// with plain additions; the main thread reads. Doubles are exact to 2^53.

/** Offsets in a row. */
export const RECEIVED = 0;
export const SENT = 1;
export const CONNECTIONS = 2;
export const REQUESTS = 3;
/** Connections open now: goes down, too. Its last decrement is the last write that a connection makes. */
export const ACTIVE = 4;
const FIRST_OUTCOME_COLUMN = 5;
export const COLUMN_COUNT: number = FIRST_OUTCOME_COLUMN + OUTCOMES.length;
export const ROWS_PER_BLOCK = 1_024;
const OUTCOME_COLUMNS = new Map(OUTCOMES.map((outcome, index) => [outcome, FIRST_OUTCOME_COLUMN + index]));

export function outcomeColumn(outcome: Outcome): number {
  return OUTCOME_COLUMNS.get(outcome) as number;
}

/** The slot of what belongs to no Service. */
export const UNROUTED_SLOT = 0;

export function createCounterBlock(): SharedArrayBuffer {
  return new SharedArrayBuffer(ROWS_PER_BLOCK * COLUMN_COUNT * Float64Array.BYTES_PER_ELEMENT);
}

/** The row of a slot, as a view of the slab that holds it. */
export function counterRow(slabs: readonly SharedArrayBuffer[], slot: number): Float64Array {
  const slab = slabs[Math.floor(slot / ROWS_PER_BLOCK)];
  if (slab === undefined) throw new Error(`no slab holds slot ${slot}`);
  return new Float64Array(slab, (slot % ROWS_PER_BLOCK) * COLUMN_COUNT * Float64Array.BYTES_PER_ELEMENT, COLUMN_COUNT);
}

/** One cell out of views of all slabs of a worker; 0 where it has no such slab yet. */
export function counterAt(cells: readonly Float64Array[], slot: number, column: number): number {
  return cells[Math.floor(slot / ROWS_PER_BLOCK)]?.[(slot % ROWS_PER_BLOCK) * COLUMN_COUNT + column] ?? 0;
}

/** Nobody else writes the rows of a worker: no Atomics. */
export function addToCounter(row: Float64Array, column: number, amount: number): void {
  row[column] = (row[column] as number) + amount;
}

export function countOutcome(row: Float64Array, outcome: Outcome): void {
  addToCounter(row, outcomeColumn(outcome), 1);
}
