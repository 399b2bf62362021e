import { readFileSync } from 'node:fs';

/** Of a process and all of its threads so far, those that have ended included. */
export type CpuTime = { readonly userMs: number; readonly systemMs: number };
/** USER_HZ, in which Linux writes times for user space: 100 on every architecture that Node supports. */
const MS_PER_TICK = 1000 / 100;

/**
 * The sum is exact but for the rounding to 10 ms (the kernel keeps it in nanoseconds); how it divides into user and system
 * is sampled by the timer.
 */
export function cpuTimeOf(pid: number): CpuTime {
  return parseProcessStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
}

/** Reads `/proc/<pid>/stat` (proc_pid_stat(5)): the name, field 2, may itself hold spaces and parentheses. */
export function parseProcessStat(text: string): CpuTime {
  const fieldsFrom3 = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const userMs = Number(fieldsFrom3[14 - 3]) * MS_PER_TICK;
  const systemMs = Number(fieldsFrom3[15 - 3]) * MS_PER_TICK;
  if (Number.isNaN(userMs + systemMs)) throw new Error(`not a line of /proc/<pid>/stat: ${text.slice(0, 80)}`);
  return { userMs, systemMs };
}

/** How long the main thread of a process was ready to run and had no processor so far, in milliseconds. */
export function runQueueMsOf(pid: number): number {
  return parseSchedstat(readFileSync(`/proc/${pid}/schedstat`, 'utf8'));
}

/** Reads `/proc/<pid>/schedstat`: nanoseconds on a processor, nanoseconds in the queue for one, how often. */
export function parseSchedstat(text: string): number {
  const [, queuedNs] = text.split(' ');
  const ms = Number(queuedNs) / 1e6;
  if (Number.isNaN(ms)) throw new Error(`not a line of /proc/<pid>/schedstat: ${text.slice(0, 80)}`);
  return ms;
}

/** What of a process is in memory, in KiB: VmRSS is behind by up to 64 pages per thread, the sum over its mappings is exact. */
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

/** The most that this process, or that of the pid, ever had in memory. */
export function peakResidentKiB(pid: number = process.pid): number {
  const [, value] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  if (value === undefined) throw new Error(`/proc/${pid}/status does not say the peak`);
  return Number(value);
}

/** How many files a process that we start may have open: it inherits our limit, and Node and HAProxy raise theirs to the hard one. */
export function descriptorLimit(): number {
  return parseDescriptorLimit(readFileSync('/proc/self/limits', 'utf8'));
}

/** Reads the hard limit of `/proc/<pid>/limits`. */
export function parseDescriptorLimit(text: string): number {
  const [, hard] = /^Max open files\s+\S+\s+(\d+|unlimited)\s/m.exec(text) ?? [];
  if (hard === undefined) throw new Error(`not /proc/<pid>/limits: ${text.slice(0, 80)}`);
  return hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard);
}

const RESERVED_DESCRIPTORS = 600;
/** Weir leaves a quarter to tenants who have not come yet. */
const MAX_TENANT_SHARE = 0.75;

/** How many idle connections of one tenant a proxy can have, which holds two descriptors of each. */
export function maxIdleConnections(limit: number): number {
  return Math.min(10_000, Math.floor((limit * MAX_TENANT_SHARE - RESERVED_DESCRIPTORS) / 2));
}

/** Of all processors together, in clock ticks (proc_stat(5)). */
export interface ProcessorTicks {
  readonly all: number;
  /** In which this machine wanted to run, and its host ran somebody else. */
  readonly stolen: number;
}

export function readProcessorTicks(): ProcessorTicks | undefined {
  try {
    return parseProcessorTicks(readFileSync('/proc/stat', 'utf8'));
  } catch {
    return undefined; // Not Linux.
  }
}

/** Undefined: it does not tell. */
export function parseProcessorTicks(stat: string): ProcessorTicks | undefined {
  // user nice system idle iowait irq softirq steal; what guests had is in the first two already.
  const ticks = /^cpu +(.+)$/m.exec(stat)?.[1]?.split(' ').slice(0, 8).map(Number) ?? [];
  const stolen = ticks[7];
  if (stolen === undefined || !ticks.every(Number.isSafeInteger)) return undefined;
  return { all: ticks.reduce((sum, each) => sum + each, 0), stolen };
}

/** From 0 to 1, of what there was between the two; null: not known. */
export function stealShare(before: ProcessorTicks | undefined, after: ProcessorTicks | undefined): number | null {
  if (before === undefined || after === undefined || after.all <= before.all) return null;
  return (after.stolen - before.stolen) / (after.all - before.all);
}
