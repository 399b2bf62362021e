import { outcomeColumn } from './columns.ts';
import type { Outcome } from './outcome.ts';

/** Nobody else writes the rows of a worker: no Atomics. */
export function addToCounter(row: Float64Array, column: number, amount: number): void {
  row[column] = (row[column] as number) + amount;
}

export function countOutcome(row: Float64Array, outcome: Outcome): void {
  addToCounter(row, outcomeColumn(outcome), 1);
}
