// The slots of worker threads, 0 to N-1. A new worker gets the slot of the worker that it replaces. Metrics therefore
// have one series for each slot, with counters that never decrease.
import type { WorkerCounts, WorkerStats } from './worker-stats.ts';

export interface WorkerSlot {
  readonly index: number;
  /** Undefined while the worker is being replaced. */
  worker: SlotWorker | undefined;
  /** Totals of the previous workers of this slot. */
  connections: number;
  cpuSeconds: number;
  droppedDatagrams: number;
  ends: number;
}

export interface SlotWorker {
  readonly id: number;
  readonly counts: WorkerCounts;
  readonly stats: WorkerStats;
}

export interface WorkerSlotView extends WorkerCounts {
  readonly worker: number;
  /** How many workers of this slot have ended. */
  readonly ends: number;
  readonly cpuSeconds: number | null;
  readonly droppedDatagrams: number;
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
      droppedDatagrams: 0,
      ends: 0,
    }));
  }

  occupy(worker: SlotWorker): void {
    const slot = this.#slots.find((each) => each.worker === undefined);
    if (slot !== undefined) slot.worker = worker;
  }

  vacate(id: number): void {
    const slot = this.#slots.find((each) => each.worker?.id === id);
    if (slot?.worker === undefined) return;
    const { counts, stats } = slot.worker;
    slot.connections += counts.connections;
    slot.cpuSeconds += stats.cpuSeconds ?? 0;
    slot.droppedDatagrams += stats.droppedDatagrams;
    slot.ends += 1;
    slot.worker = undefined;
  }

  workerIdAt(index: number): number | undefined {
    return this.#slots[index]?.worker?.id;
  }

  view(): WorkerSlotView[] {
    return this.#slots.map(({ index, worker, connections, cpuSeconds, droppedDatagrams, ends }) => {
      const { counts, stats } = worker ?? {};
      const hasCpuTime = stats?.cpuSeconds !== undefined || cpuSeconds > 0;
      return {
        worker: index,
        ends,
        connections: connections + (counts?.connections ?? 0),
        active: counts?.active ?? 0,
        cpuSeconds: hasCpuTime ? cpuSeconds + (stats?.cpuSeconds ?? 0) : null,
        droppedDatagrams: droppedDatagrams + (stats?.droppedDatagrams ?? 0),
        vitals: stats ?? null,
      };
    });
  }
}
