import { CODE_CLASSES, type CodeClass } from '@weir/model/data-plane';
import { OUTCOMES, type Outcome, REFUSAL_OUTCOMES, REQUEST_REFUSALS, type RequestRefusal } from './outcome.ts';

// The layout of the counters in shared memory: one row of doubles per slot, and `ROWS_PER_BLOCK` rows per block. Each
// worker writes its own blocks with plain additions; the main thread reads the blocks of all workers. Doubles count
// exactly up to 2^53.

/** The columns of a row. */
export const RECEIVED = 0;
export const SENT = 1;
export const CONNECTIONS = 2;
/**
 * Open connections. A connection decrements this counter after all its other writes, because the slot may be given to
 * another Service when the count is 0.
 */
export const ACTIVE = 3;
/**
 * Bytes that the kernel has taken for clients, but that do not count as sent yet, because the clients have not
 * acknowledged them. If a worker fails, these bytes count as sent, because its descriptors are closed and the kernel can
 * no longer be asked.
 */
export const UNACKNOWLEDGED = 4;
const FIRST_CODE_CLASS_COLUMN = 5;
/** The columns of the requests by code class, in the order of `CODE_CLASSES`. Their sum is the number of requests. */
export const CODE_CLASS_COLUMNS: readonly number[] = CODE_CLASSES.map((_, index) => FIRST_CODE_CLASS_COLUMN + index);

/** The upper bounds of the buckets of a histogram of durations, in milliseconds. One more bucket has no bound. */
export const DURATION_BUCKETS_MS: readonly number[] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];
/** The columns of a histogram: the number of durations per bucket, and the sum of all durations in microseconds. */
const HISTOGRAM_COLUMN_COUNT = DURATION_BUCKETS_MS.length + 2;
/** The first column of the histogram of the time from a request's head to the last byte of its answer. */
export const REQUEST_DURATION: number = FIRST_CODE_CLASS_COLUMN + CODE_CLASSES.length;
/** The first column of the histogram of the time from the request at the endpoint to the head of the endpoint's answer. */
export const ENDPOINT_DURATION: number = REQUEST_DURATION + HISTOGRAM_COLUMN_COUNT;
/** Lines of the access log that were dropped. */
export const ACCESS_LOG_DROPPED: number = ENDPOINT_DURATION + HISTOGRAM_COLUMN_COUNT;
const FIRST_OUTCOME_COLUMN = ACCESS_LOG_DROPPED + 1;
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

export function codeClassColumn(codeClass: CodeClass): number {
  return FIRST_CODE_CLASS_COLUMN + CODE_CLASSES.indexOf(codeClass);
}

/** Returns the columns of a histogram: one per bucket, then the sum. */
export function histogramColumns(first: number): number[] {
  return Array.from({ length: HISTOGRAM_COLUMN_COUNT }, (_, index) => first + index);
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

/**
 * Adds a duration in milliseconds to the histogram whose first column is `first`. The sum is in whole microseconds,
 * because the totals of a slot are exact only if its counters are integers.
 */
export function countDuration(row: Float64Array, first: number, durationMs: number): void {
  let bucket = 0;
  while (bucket < DURATION_BUCKETS_MS.length && durationMs > (DURATION_BUCKETS_MS[bucket] as number)) bucket += 1;
  addToCounter(row, first + bucket, 1);
  addToCounter(row, first + HISTOGRAM_COLUMN_COUNT - 1, Math.round(durationMs * 1_000));
}

export function countOutcome(row: Float64Array, outcome: Outcome): void {
  addToCounter(row, outcomeColumn(outcome), 1);
}

/**
 * The reason of each column of refusals. A few reasons have two columns: one for connections and one for requests.
 */
export const REFUSAL_REASONS: readonly string[] = [...REFUSAL_OUTCOMES, ...REQUEST_REFUSALS];
/** The columns of refusals, in the order of `REFUSAL_REASONS`. */
export const REFUSAL_COLUMNS: readonly number[] = [
  ...REFUSAL_OUTCOMES.map(outcomeColumn),
  ...REQUEST_REFUSALS.map(requestRefusalColumn),
];

export function countRequestRefusal(row: Float64Array, reason: RequestRefusal): void {
  addToCounter(row, requestRefusalColumn(reason), 1);
}
