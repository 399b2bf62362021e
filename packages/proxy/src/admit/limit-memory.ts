import { createClientMemory } from './client-counts.ts';
import { createSheetMemory, type SheetMemory } from './limit-sheet.ts';

/** All that the workers of a proxy share about limits. */
export interface LimitMemory {
  readonly sheet: SheetMemory;
  readonly clients: SharedArrayBuffer;
}

/** A worker's part in it: nobody else counts in its column. */
export interface LimitSeat {
  readonly memory: LimitMemory;
  readonly column: number;
}

export function createLimitMemory(workers: number): LimitMemory {
  return { sheet: createSheetMemory(workers), clients: createClientMemory(workers) };
}
