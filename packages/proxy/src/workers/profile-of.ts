import type { Worker } from 'node:worker_threads';
import { type Clock, wait } from '@weir/runtime';

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
