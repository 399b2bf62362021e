import { readFileSync } from 'node:fs';
import { residentKiB } from '../measure/resident-memory.ts';

export function residentNowKiB(): number {
  return residentKiB(process.pid);
}

/** The most that this process ever had in memory. */
export function peakKiB(): number {
  const [, value] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  if (value === undefined) throw new Error('/proc/self/status does not say the peak');
  return Number(value);
}
