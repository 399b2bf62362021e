import { readFileSync } from 'node:fs';

/** For what else the process opens: endpoints of what is accepted already, files, the store. */
const RESERVE = 64;

/**
 * Connections whose descriptor is this or higher are not to be accepted. At the limit itself libuv would take them and close
 * them without a word to us, and nothing else of the process could open anything.
 */
export function descriptorCeiling(): number {
  return ceilingFor(ownLimits());
}

/** From the text of /proc/<pid>/limits; at small limits a quarter stays free. */
export function ceilingFor(limits: string): number {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
  if (soft === undefined) return Number.POSITIVE_INFINITY;
  return Number(soft) - Math.min(RESERVE, Math.floor(Number(soft) / 4));
}

function ownLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}
