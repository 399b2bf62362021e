import { totalmem } from 'node:os';

const MAX_HEAP_MB = 4_096;
const MIN_HEAP_MB = 128;
/** The rest is for buffers, the kernel's and ours, and for everybody else. */
const WORKERS_MEMORY_SHARE = 0.5;

/**
 * How large the heap of one worker may grow, in MiB, so that a worker that leaks is ended and replaced before this process is
 * killed with all of its workers. `memory`: what this process may use, in bytes.
 */
export function heapLimitMb(memory: number, workers: number): number {
  const each = (memory * WORKERS_MEMORY_SHARE) / (workers + 1) / 1_048_576;
  return Math.floor(Math.min(MAX_HEAP_MB, Math.max(MIN_HEAP_MB, each)));
}

/** What this process may use: of the machine, or of its cgroup where that is less. */
export function availableMemoryBytes(): number {
  const limit = process.constrainedMemory();
  // 0: unknown; without a limit cgroups say a number beyond any machine.
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
