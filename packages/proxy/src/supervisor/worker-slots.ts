// Workers come and go, their seats stay: 0 to N-1, so that metrics have as many series as there are workers, and counters
// that never go back.

import type { WorkerCounts, WorkerStats } from './worker-stats.ts';

export interface WorkerSlot {
  readonly index: number;
  /** The worker that sits there now; undefined: it is being replaced. */
  worker: SlotWorker | undefined;
  /** Of those who sat there before. */
  connections: number;
  cpuSeconds: number;
  ends: number;
}

export interface SlotWorker {
  readonly id: number;
  readonly counts: WorkerCounts;
  readonly stats: WorkerStats;
}

export interface WorkerSlotView extends WorkerCounts {
  readonly worker: number;
  /** How many workers of this seat have ended. */
  readonly ends: number;
  readonly cpuSeconds: number | null;
  readonly vitals: WorkerStats | null;
}

export class WorkerSlots {
  readonly #slots: WorkerSlot[];

  constructor(count: number) {
    this.#slots = Array.from({ length: count }, (_, index) => ({
      index,
      worker: undefined,
      connections: 0,
      cpuSeconds: 0,
      ends: 0,
    }));
  }

  occupy(occupant: SlotWorker): void {
    const seat = this.#slots.find((each) => each.worker === undefined);
    if (seat !== undefined) seat.worker = occupant;
  }

  vacate(id: number): void {
    const seat = this.#slots.find((each) => each.worker?.id === id);
    if (seat?.worker === undefined) return;
    const { counts, stats } = seat.worker;
    seat.connections += counts.connections;
    seat.cpuSeconds += stats.cpuSeconds ?? 0;
    seat.ends += 1;
    seat.worker = undefined;
  }

  /** The worker at this seat now. */
  workerIdAt(index: number): number | undefined {
    return this.#slots[index]?.worker?.id;
  }

  view(): WorkerSlotView[] {
    return this.#slots.map(({ index, worker, connections, cpuSeconds, ends }) => {
      const { counts, stats } = worker ?? {};
      const tellsCpu = stats?.cpuSeconds !== undefined || cpuSeconds > 0;
      return {
        worker: index,
        ends,
        connections: connections + (counts?.connections ?? 0),
        active: counts?.active ?? 0,
        cpuSeconds: tellsCpu ? cpuSeconds + (stats?.cpuSeconds ?? 0) : null,
        vitals: stats ?? null,
      };
    });
  }
}
