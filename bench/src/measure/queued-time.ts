import { readFileSync } from 'node:fs';

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
