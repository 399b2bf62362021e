import { readFileSync } from 'node:fs';

/** What of a process is in memory, in KiB: VmRSS is behind by up to 64 pages per thread, the sum over its mappings is exact. */
export function residentKiB(pid: number): number {
  return parseSmapsRollup(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'));
}

export function parseSmapsRollup(text: string): number {
  const [, value] = /^Rss:\s+(\d+) kB$/m.exec(text) ?? [];
  if (value === undefined) throw new Error(`not /proc/<pid>/smaps_rollup: ${text.slice(0, 80)}`);
  return Number(value);
}
