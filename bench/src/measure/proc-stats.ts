import { readFileSync } from 'node:fs';

/** CPU time of a process and all of its threads, including threads that have ended. */
export type CpuTime = { readonly userMs: number; readonly systemMs: number };
/** Linux reports times to user space in ticks of USER_HZ, which is 100 on every architecture that Node supports. */
const MS_PER_TICK = 1000 / 100;

/** The sum is exact except for the rounding to 10 ms; the division into user and system time is sampled by the kernel's timer. */
export function cpuTimeOf(pid: number): CpuTime {
  return parseProcessStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
}

/** Parses `/proc/<pid>/stat` (proc_pid_stat(5)); the process name, field 2, may contain spaces and parentheses. */
export function parseProcessStat(text: string): CpuTime {
  const fieldsFrom3 = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const userMs = Number(fieldsFrom3[14 - 3]) * MS_PER_TICK;
  const systemMs = Number(fieldsFrom3[15 - 3]) * MS_PER_TICK;
  if (Number.isNaN(userMs + systemMs)) throw new Error(`not a line of /proc/<pid>/stat: ${text.slice(0, 80)}`);
  return { userMs, systemMs };
}

/** Returns how long the main thread of a process has been ready to run without a processor, in milliseconds. */
export function runQueueMsOf(pid: number): number {
  return parseSchedstat(readFileSync(`/proc/${pid}/schedstat`, 'utf8'));
}

/** Parses `/proc/<pid>/schedstat`: nanoseconds on a processor, nanoseconds in a run queue, number of time slices. */
export function parseSchedstat(text: string): number {
  const [, queuedNs] = text.split(' ');
  const ms = Number(queuedNs) / 1e6;
  if (Number.isNaN(ms)) throw new Error(`not a line of /proc/<pid>/schedstat: ${text.slice(0, 80)}`);
  return ms;
}

/** Returns the resident memory of a process: VmRSS lags by up to 64 pages per thread, but the sum over the mappings is exact. */
export function residentKiB(pid: number): number {
  return parseSmapsRollup(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'));
}

export function parseSmapsRollup(text: string): number {
  const [, value] = /^Rss:\s+(\d+) kB$/m.exec(text) ?? [];
  if (value === undefined) throw new Error(`not /proc/<pid>/smaps_rollup: ${text.slice(0, 80)}`);
  return Number(value);
}

export function ownResidentKiB(): number {
  return residentKiB(process.pid);
}

/** Returns the highest resident memory that a process, by default this process, ever had. */
export function peakResidentKiB(pid: number = process.pid): number {
  const [, value] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  if (value === undefined) throw new Error(`/proc/${pid}/status has no VmHWM`);
  return Number(value);
}

/** Returns the descriptor limit of a child process: it inherits our limits, and Node and HAProxy raise the soft limit to the hard limit. */
export function descriptorLimit(): number {
  return parseDescriptorLimit(readFileSync('/proc/self/limits', 'utf8'));
}

/** Parses the hard limit in `/proc/<pid>/limits`. */
export function parseDescriptorLimit(text: string): number {
  const [, hard] = /^Max open files\s+\S+\s+(\d+|unlimited)\s/m.exec(text) ?? [];
  if (hard === undefined) throw new Error(`not /proc/<pid>/limits: ${text.slice(0, 80)}`);
  return hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard);
}

/** Descriptors that a proxy needs for other purposes than connections and listeners. */
export const RESERVED_DESCRIPTORS = 600;
/** Weir reserves a quarter of the descriptors for tenants without connections. */
const MAX_TENANT_SHARE = 0.75;

/** Returns how many idle connections of one tenant fit into a descriptor limit; each connection needs two descriptors. */
export function maxIdleConnections(limit: number): number {
  return Math.min(10_000, Math.floor((limit * MAX_TENANT_SHARE - RESERVED_DESCRIPTORS) / 2));
}

/** Sums over all processors in clock ticks (proc_stat(5)). */
export type ProcessorTicks = {
  readonly total: number;
  /** Ticks in which this machine was ready to run, and the hypervisor ran another machine. */
  readonly stolen: number;
};

export function readProcessorTicks(): ProcessorTicks | undefined {
  try {
    return parseProcessorTicks(readFileSync('/proc/stat', 'utf8'));
  } catch {
    return undefined; // not Linux
  }
}

/** Returns undefined if the text has no steal time. */
export function parseProcessorTicks(stat: string): ProcessorTicks | undefined {
  // user nice system idle iowait irq softirq steal; the time of guests is included in the first two
  const ticks = /^cpu +(.+)$/m.exec(stat)?.[1]?.split(' ').slice(0, 8).map(Number) ?? [];
  const stolen = ticks[7];
  if (stolen === undefined || !ticks.every(Number.isSafeInteger)) return undefined;
  return { total: ticks.reduce((sum, count) => sum + count, 0), stolen };
}

/** Returns the stolen share of the processors' time between two readings, 0 to 1; null if unknown. */
export function stealShare(before: ProcessorTicks | undefined, after: ProcessorTicks | undefined): number | null {
  if (before === undefined || after === undefined || after.total <= before.total) return null;
  return (after.stolen - before.stolen) / (after.total - before.total);
}
