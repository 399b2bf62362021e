import type { Worker } from 'node:worker_threads';
import { type Clock, wait } from '@weir/runtime';
import { ACTIVE, COLUMN_COUNT, CONNECTIONS } from '../metering/counters.ts';
import { DELAY_QUANTILES } from '../worker/event-loop-delay.ts';

// How a worker thread is doing, asked from outside: it need not answer, and a worker that hangs is not waited for.
export interface WorkerStats {
  /** Of the thread, since it began; undefined: this Node does not tell. */
  readonly cpuSeconds: number | undefined;
  readonly heapBytes: number | undefined;
  /** Part of the time in which the event loop was busy, over the last second. */
  readonly utilization: number;
  /** By how much events came too late within the last half minute: half, 99 % and all of them by no more than this. */
  readonly delaySeconds: readonly { readonly quantile: number; readonly value: number }[];
}

export class WorkerStatsSampler {
  readonly #worker: Worker;
  readonly #delays: Float64Array;
  #cpuSeconds: number | undefined;
  #heapBytes: number | undefined;
  #utilization = 0;
  #lastUtilization: ReturnType<Worker['performance']['eventLoopUtilization']>;
  #isQuerying = false;

  constructor(worker: Worker, delays: SharedArrayBuffer) {
    this.#worker = worker;
    this.#delays = new Float64Array(delays);
    this.#lastUtilization = worker.performance.eventLoopUtilization();
  }

  /** Once a second. */
  sample(): void {
    const { performance } = this.#worker;
    this.#utilization = performance.eventLoopUtilization(this.#lastUtilization).utilization;
    this.#lastUtilization = performance.eventLoopUtilization();
    void this.#query();
  }

  get last(): WorkerStats {
    return {
      cpuSeconds: this.#cpuSeconds,
      heapBytes: this.#heapBytes,
      utilization: this.#utilization,
      delaySeconds: DELAY_QUANTILES.map((quantile, index) => ({ quantile, value: this.#delays[index] as number })),
    };
  }

  async #query(): Promise<void> {
    if (this.#isQuerying) return;
    this.#isQuerying = true;
    try {
      // Of Node 24 and later; `engines` admits 22.
      const { user, system } = (await this.#worker.cpuUsage?.()) ?? {};
      if (user !== undefined && system !== undefined) this.#cpuSeconds = (user + system) / 1e6;
      this.#heapBytes = (await this.#worker.getHeapStatistics?.())?.used_heap_size;
    } catch {
      // It has ended meanwhile.
    } finally {
      this.#isQuerying = false;
    }
  }
}

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

export interface ProfileOptions {
  readonly durationMs: number;
  readonly clock: Clock;
}

/** A CPU profile of a worker that goes on meanwhile. Rejects when the worker ends, or this Node cannot. */
export async function profileWorker(worker: Worker, { durationMs, clock }: ProfileOptions): Promise<string> {
  if (typeof worker.startCpuProfile !== 'function') {
    throw new Error(`Node ${process.version} cannot profile a worker; use Node 24.8 or later`);
  }
  const profile = await worker.startCpuProfile();
  await wait(clock, durationMs);
  return profile.stop();
}
