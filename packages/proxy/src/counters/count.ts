import { outcomeColumn } from './columns.ts';
import type { Outcome } from './outcome.ts';

/** Nobody else writes the rows of a worker: no Atomics. */
export function add(row: Float64Array, column: number, amount: number): void {
  row[column] = (row[column] as number) + amount;
}

export function countOutcome(row: Float64Array, outcome: Outcome): void {
  add(row, outcomeColumn(outcome), 1);
}
