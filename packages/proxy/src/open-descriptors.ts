import { readdirSync, readFileSync, statSync } from 'node:fs';

const RESERVE_SHARE = 3;
const MOST_RESERVE = 256;
const FOLDER = '/proc/self/fd';

/** How many descriptors this process has open; 0 where nobody tells. */
export function openDescriptors(): number {
  try {
    // Linux 6.2 and later say it without printing them all.
    const { size } = statSync(FOLDER);
    return size > 0 ? size : readdirSync(FOLDER).length;
  } catch {
    return 0;
  }
}

/** How many it may have (Node has raised the soft limit to the hard one at its start); undefined: nobody tells. */
export function descriptorLimit(): number | undefined {
  try {
    return limitIn(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    return undefined;
  }
}

/** At how many no new connection is let in: the rest is for everything that is no connection. */
export function forConnections(limit: number): number {
  return limit - Math.min(MOST_RESERVE, Math.ceil(limit / RESERVE_SHARE));
}

/** Of the text of /proc/PID/limits. */
export function limitIn(limits: string): number | undefined {
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? undefined : Number(soft);
}

/** How many connections fit: each has a descriptor of its own, and one to its endpoint. */
export function connectionPlaces(limit: number | undefined): number {
  return limit === undefined ? Number.POSITIVE_INFINITY : Math.floor(forConnections(limit) / 2);
}
