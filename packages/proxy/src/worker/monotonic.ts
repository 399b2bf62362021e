// `performance.now()` of a worker begins with the worker. This clock is the kernel's: all threads of the process, whenever
// they were started, read the same, and it does not jump when somebody sets the time.
const startedAtMs = Number(process.hrtime.bigint() / 1_000n) / 1_000 - performance.now();

/** Milliseconds. */
export function monotonicMs(): number {
  return startedAtMs + performance.now();
}
