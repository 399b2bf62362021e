// The layout of the counters in shared memory: rows of doubles, one row per slot. A worker writes only its own slab,
// with plain additions; the main thread reads. Doubles are exact to 2^53.
import { OUTCOMES, type Outcome } from './outcome.ts';

/** Offsets in a row. */
export const RECEIVED = 0;
export const SENT = 1;
export const CONNECTIONS = 2;
export const REQUESTS = 3;
/** Connections open now: goes down, too. Its last decrement is the last write that a connection makes. */
export const ACTIVE = 4;
const FIRST_OUTCOME = 5;

export const COLUMNS: number = FIRST_OUTCOME + OUTCOMES.length;
export const ROWS_PER_SLAB = 1_024;

const OUTCOME_COLUMNS = new Map(OUTCOMES.map((outcome, index) => [outcome, FIRST_OUTCOME + index]));

export function outcomeColumn(outcome: Outcome): number {
  return OUTCOME_COLUMNS.get(outcome) as number;
}

/** The slot of what belongs to no Service. */
export const UNROUTED_SLOT = 0;

export function createSlab(): SharedArrayBuffer {
  return new SharedArrayBuffer(ROWS_PER_SLAB * COLUMNS * Float64Array.BYTES_PER_ELEMENT);
}

/** The row of a slot, as a view of the slab that holds it. */
export function rowOf(slabs: readonly SharedArrayBuffer[], slot: number): Float64Array {
  const slab = slabs[Math.floor(slot / ROWS_PER_SLAB)];
  if (slab === undefined) throw new Error(`no slab holds slot ${slot}`);
  return new Float64Array(slab, (slot % ROWS_PER_SLAB) * COLUMNS * Float64Array.BYTES_PER_ELEMENT, COLUMNS);
}

/** One cell out of views of all slabs of a worker; 0 where it has no such slab yet. */
export function cellOf(cells: readonly Float64Array[], slot: number, column: number): number {
  return cells[Math.floor(slot / ROWS_PER_SLAB)]?.[(slot % ROWS_PER_SLAB) * COLUMNS + column] ?? 0;
}
