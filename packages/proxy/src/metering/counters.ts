import { OUTCOMES, type Outcome, REQUEST_REFUSALS, type RequestRefusal } from './outcome.ts';

// The layout of the counters in shared memory: one row of doubles per slot, and `ROWS_PER_BLOCK` rows per block. Each
// worker writes its own blocks with plain additions; the main thread reads the blocks of all workers. Doubles count
// exactly up to 2^53.

/** The columns of a row. */
export const RECEIVED = 0;
export const SENT = 1;
export const CONNECTIONS = 2;
export const REQUESTS = 3;
/**
 * Open connections. A connection decrements this counter after all its other writes, because the slot may be given to
 * another Service when the count is 0.
 */
export const ACTIVE = 4;
/**
 * Bytes that the kernel has taken for clients, but that do not count as sent yet, because the clients have not
 * acknowledged them. If a worker fails, these bytes count as sent, because its descriptors are closed and the kernel can
 * no longer be asked.
 */
export const UNACKNOWLEDGED = 5;
const FIRST_OUTCOME_COLUMN = 6;
const FIRST_REQUEST_REFUSAL_COLUMN = FIRST_OUTCOME_COLUMN + OUTCOMES.length;
export const COLUMN_COUNT: number = FIRST_REQUEST_REFUSAL_COLUMN + REQUEST_REFUSALS.length;
export const ROWS_PER_BLOCK = 1_024;
const OUTCOME_COLUMNS = new Map(OUTCOMES.map((outcome, index) => [outcome, FIRST_OUTCOME_COLUMN + index]));

const REQUEST_REFUSAL_COLUMNS = new Map(
  REQUEST_REFUSALS.map((reason, index) => [reason, FIRST_REQUEST_REFUSAL_COLUMN + index]),
);

export function outcomeColumn(outcome: Outcome): number {
  return OUTCOME_COLUMNS.get(outcome) as number;
}

export function requestRefusalColumn(reason: RequestRefusal): number {
  return REQUEST_REFUSAL_COLUMNS.get(reason) as number;
}

/** The slot that counts connections that are not routed yet or are never routed. */
export const UNROUTED_SLOT = 0;

export function createCounterBlock(): SharedArrayBuffer {
  return new SharedArrayBuffer(ROWS_PER_BLOCK * COLUMN_COUNT * Float64Array.BYTES_PER_ELEMENT);
}

/** Returns a view of a slot's row in the block that holds it. */
export function counterRow(blocks: readonly SharedArrayBuffer[], slot: number): Float64Array {
  const block = blocks[Math.floor(slot / ROWS_PER_BLOCK)];
  if (block === undefined) throw new Error(`no counter block holds slot ${slot}`);
  return new Float64Array(block, (slot % ROWS_PER_BLOCK) * COLUMN_COUNT * Float64Array.BYTES_PER_ELEMENT, COLUMN_COUNT);
}

/**
 * Returns the value of one counter of a worker, or 0 if the worker does not have the slot's block yet. `cells` are
 * views of the worker's blocks.
 */
export function counterAt(cells: readonly Float64Array[], slot: number, column: number): number {
  return cells[Math.floor(slot / ROWS_PER_BLOCK)]?.[(slot % ROWS_PER_BLOCK) * COLUMN_COUNT + column] ?? 0;
}

/** Adds to a counter. Needs no Atomics, because only one worker writes each row. */
export function addToCounter(row: Float64Array, column: number, amount: number): void {
  row[column] = (row[column] as number) + amount;
}

export function countOutcome(row: Float64Array, outcome: Outcome): void {
  addToCounter(row, outcomeColumn(outcome), 1);
}

export function countRequestRefusal(row: Float64Array, reason: RequestRefusal): void {
  addToCounter(row, requestRefusalColumn(reason), 1);
}
