// Collects statistics of a worker thread on the main thread. Readers get the last known values, so that a worker that
// hangs delays no reader.
import type { Worker } from 'node:worker_threads';
import { type Clock, wait } from '@weir/runtime';
import { ACTIVE, COLUMN_COUNT, CONNECTIONS } from '../metering/counters.ts';
import { DELAY_QUANTILES } from '../worker/event-loop-delay.ts';

export interface WorkerStats {
  /** CPU time of the thread since it started; undefined if this version of Node does not report it. */
  readonly cpuSeconds: number | undefined;
  readonly heapBytes: number | undefined;
  /** How many datagrams the kernel has dropped at the worker's UDP listeners. */
  readonly droppedDatagrams: number;
  /** The share of the last second in which the event loop was busy, 0 to 1. */
  readonly utilization: number;
  /** Quantiles of the event loop's delay over the last 30 to 60 seconds. */
  readonly delaySeconds: readonly { readonly quantile: number; readonly value: number }[];
}

export class WorkerStatsSampler {
  readonly #worker: Worker;
  readonly #delays: Float64Array;
  readonly #droppedDatagrams: Float64Array;
  #cpuSeconds: number | undefined;
  #heapBytes: number | undefined;
  #utilization = 0;
  #lastUtilization: ReturnType<Worker['performance']['eventLoopUtilization']>;
  #isQuerying = false;

  constructor(worker: Worker, memory: Readonly<Record<'delays' | 'droppedDatagrams', SharedArrayBuffer>>) {
    this.#worker = worker;
    this.#delays = new Float64Array(memory.delays);
    this.#droppedDatagrams = new Float64Array(memory.droppedDatagrams);
    this.#lastUtilization = worker.performance.eventLoopUtilization();
  }

  /** To be called once a second. */
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
      droppedDatagrams: this.#droppedDatagrams[0] as number,
      utilization: this.#utilization,
      delaySeconds: DELAY_QUANTILES.map((quantile, index) => ({ quantile, value: this.#delays[index] as number })),
    };
  }

  async #query(): Promise<void> {
    if (this.#isQuerying) return;
    this.#isQuerying = true;
    try {
      // `cpuUsage` is optional here, because `engines` allows Node 22, which does not have it.
      const { user, system } = (await this.#worker.cpuUsage?.()) ?? {};
      if (user !== undefined && system !== undefined) this.#cpuSeconds = (user + system) / 1e6;
      this.#heapBytes = (await this.#worker.getHeapStatistics?.())?.used_heap_size;
    } catch {
      // The worker has ended.
    } finally {
      this.#isQuerying = false;
    }
  }
}

export interface WorkerCounts {
  readonly connections: number;
  /** The number of connections that are open now. */
  readonly active: number;
}

/** Returns the sums of one worker's counters for all Services. */
export function sumCounters(blocks: readonly SharedArrayBuffer[]): WorkerCounts {
  let connections = 0;
  let active = 0;
  for (const block of blocks) {
    const cells = new Float64Array(block);
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

/** Takes a CPU profile while the worker continues. Rejects if the worker ends or this version of Node cannot profile workers. */
export async function profileWorker(worker: Worker, { durationMs, clock }: ProfileOptions): Promise<string> {
  if (typeof worker.startCpuProfile !== 'function') {
    throw new Error(`Node ${process.version} cannot profile a worker; use Node 24.8 or later`);
  }
  const profile = await worker.startCpuProfile();
  await wait(clock, durationMs);
  return profile.stop();
}
