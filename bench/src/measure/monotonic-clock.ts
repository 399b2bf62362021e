/** Milliseconds of the machine's monotonic clock, which is the same in all processes on it. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
