import { readFileSync } from 'node:fs';
import { residentKiB } from '../measure/resident-memory.ts';

export function ownResidentKiB(): number {
  return residentKiB(process.pid);
}

/** The most that this process, or that of the pid, ever had in memory. */
export function peakResidentKiB(pid: number = process.pid): number {
  const [, value] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  if (value === undefined) throw new Error(`/proc/${pid}/status does not say the peak`);
  return Number(value);
}
