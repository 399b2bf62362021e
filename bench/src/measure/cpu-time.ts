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
