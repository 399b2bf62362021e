import { readFileSync } from 'node:fs';

/** CPU time of a process and all of its threads, including threads that have ended. */
export type CpuTime = { readonly userMs: number; readonly systemMs: number };
/** Length of the tick in which /proc reports times. USER_HZ is 100 ticks a second on every architecture that Node supports. */
const MS_PER_TICK = 1000 / 100;

/** Returns the CPU time of a process. The sum is exact to 10 ms, but the kernel only estimates the shares of user and system time. */
export function cpuTimeOf(pid: number): CpuTime {
  return parseProcessStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
}

/** Returns the CPU time of the main thread of a process. Exact to 10 ms, as in `cpuTimeOf`. */
export function mainThreadCpuTimeOf(pid: number): CpuTime {
  return parseProcessStat(readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8'));
}

/** Returns the CPU time of all threads of a process but its main thread. */
export function cpuTimeWithoutMainThread(pid: number): CpuTime {
  const all = cpuTimeOf(pid);
  const main = mainThreadCpuTimeOf(pid);
  return { userMs: all.userMs - main.userMs, systemMs: all.systemMs - main.systemMs };
}

/** Parses `/proc/<pid>/stat` (proc_pid_stat(5)) after field 2, the process name, which may contain spaces and parentheses. */
export function parseProcessStat(text: string): CpuTime {
  const fieldsFrom3 = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const userMs = Number(fieldsFrom3[14 - 3]) * MS_PER_TICK;
  const systemMs = Number(fieldsFrom3[15 - 3]) * MS_PER_TICK;
  if (Number.isNaN(userMs + systemMs)) throw new Error(`not a line of /proc/<pid>/stat: ${text.slice(0, 80)}`);
  return { userMs, systemMs };
}

/** Returns how long the main thread of a process has waited for a processor while ready to run, in milliseconds. */
export function runQueueMsOf(pid: number): number {
  return parseSchedstat(readFileSync(`/proc/${pid}/schedstat`, 'utf8'));
}

/**
 * Returns the milliseconds in a run queue from `/proc/<pid>/schedstat`. The fields are nanoseconds on a processor, nanoseconds in a
 * run queue, and the number of time slices.
 */
export function parseSchedstat(text: string): number {
  const [, queuedNs] = text.split(' ');
  const ms = Number(queuedNs) / 1e6;
  if (Number.isNaN(ms)) throw new Error(`not a line of /proc/<pid>/schedstat: ${text.slice(0, 80)}`);
  return ms;
}

/** Returns the resident memory of a process. Sums over the mappings, because VmRSS lags by up to 64 pages per thread. */
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

/** Returns the highest resident memory of a process since its start. Default: this process. */
export function peakResidentKiB(pid: number = process.pid): number {
  const [, value] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  if (value === undefined) throw new Error(`/proc/${pid}/status has no VmHWM`);
  return Number(value);
}

/** Returns the hard limit of descriptors, which child processes inherit. Node and HAProxy raise their soft limit to the hard limit. */
export function descriptorLimit(): number {
  return parseDescriptorLimit(readFileSync('/proc/self/limits', 'utf8'));
}

/** Parses the hard limit in `/proc/<pid>/limits`. */
export function parseDescriptorLimit(text: string): number {
  const [, hard] = /^Max open files\s+\S+\s+(\d+|unlimited)\s/m.exec(text) ?? [];
  if (hard === undefined) throw new Error(`not /proc/<pid>/limits: ${text.slice(0, 80)}`);
  return hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard);
}

/** Number of descriptors that a proxy needs apart from connections and listeners. */
export const RESERVED_DESCRIPTORS = 600;
/** The share of the descriptors that Weir lets one tenant use. The remaining descriptors are kept for other tenants. */
const MAX_TENANT_SHARE = 0.75;

/** Returns how many idle connections of one tenant a descriptor limit allows, but at most 10,000. A connection needs two descriptors. */
export function maxIdleConnections(limit: number): number {
  return Math.min(10_000, Math.floor((limit * MAX_TENANT_SHARE - RESERVED_DESCRIPTORS) / 2));
}

/** Times of all processors together, in clock ticks (proc_stat(5)). */
export type ProcessorTicks = {
  readonly total: number;
  /** Steal time: the ticks in which this machine was ready to run, but the hypervisor ran another machine. */
  readonly stolen: number;
};

export function readProcessorTicks(): ProcessorTicks | undefined {
  try {
    return parseProcessorTicks(readFileSync('/proc/stat', 'utf8'));
  } catch {
    return undefined; // /proc/stat exists only on Linux
  }
}

/** Parses the first line of `/proc/stat`. Returns undefined if the line has no steal time. */
export function parseProcessorTicks(stat: string): ProcessorTicks | undefined {
  // user nice system idle iowait irq softirq steal; the later fields guest and guest_nice are already included in user and nice
  const ticks = /^cpu +(.+)$/m.exec(stat)?.[1]?.split(' ').slice(0, 8).map(Number) ?? [];
  const stolen = ticks[7];
  if (stolen === undefined || !ticks.every(Number.isSafeInteger)) return undefined;
  return { total: ticks.reduce((sum, count) => sum + count, 0), stolen };
}

/** Returns the share of steal time between two readings, 0 to 1; null if a reading is missing or no time has passed. */
export function stealShare(before: ProcessorTicks | undefined, after: ProcessorTicks | undefined): number | null {
  if (before === undefined || after === undefined || after.total <= before.total) return null;
  return (after.stolen - before.stolen) / (after.total - before.total);
}
