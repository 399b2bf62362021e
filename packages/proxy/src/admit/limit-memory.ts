import { createClientCountsMemory } from './client-counts.ts';
import { createLimiterStateMemory, type LimiterStateMemory } from './limit-sheet.ts';

/** All that the workers of a proxy share about limits. */
export interface LimiterMemory {
  readonly state: LimiterStateMemory;
  readonly clientCounts: SharedArrayBuffer;
}

/** A worker's part in it: nobody else counts in its column. */
export interface WorkerLimiterMemory {
  readonly memory: LimiterMemory;
  readonly workerSlot: number;
}

export function createLimiterMemory(workers: number): LimiterMemory {
  return { state: createLimiterStateMemory(workers), clientCounts: createClientCountsMemory(workers) };
}
