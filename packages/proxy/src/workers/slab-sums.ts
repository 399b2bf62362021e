import { ACTIVE, COLUMN_COUNT, CONNECTIONS } from '../counters/columns.ts';

export interface WorkerCounts {
  readonly connections: number;
  /** Open now. */
  readonly active: number;
}

/** What one worker has counted over all Services. */
export function sumCounters(slabs: readonly SharedArrayBuffer[]): WorkerCounts {
  let connections = 0;
  let active = 0;
  for (const slab of slabs) {
    const cells = new Float64Array(slab);
    for (let row = 0; row < cells.length; row += COLUMN_COUNT) {
      connections += cells[row + CONNECTIONS] as number;
      active += cells[row + ACTIVE] as number;
    }
  }
  return { connections, active };
}
