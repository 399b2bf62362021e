import { readdirSync, readFileSync, statSync } from 'node:fs';

const RESERVE_DIVISOR = 3;
const MAX_RESERVED_DESCRIPTORS = 256;
const DESCRIPTOR_FOLDER = '/proc/self/fd';

/** How many descriptors this process has open; 0 where nobody tells. */
export function countOpenDescriptors(): number {
  try {
    // Linux 6.2 and later say it without printing them all.
    const { size } = statSync(DESCRIPTOR_FOLDER);
    return size > 0 ? size : readdirSync(DESCRIPTOR_FOLDER).length;
  } catch {
    return 0;
  }
}

/** How many it may have (Node has raised the soft limit to the hard one at its start); undefined: nobody tells. */
export function descriptorLimit(): number | undefined {
  try {
    return parseDescriptorLimit(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    return undefined;
  }
}

/** At how many no new connection is let in: the rest is for everything that is no connection. */
export function descriptorsForConnections(limit: number): number {
  return limit - Math.min(MAX_RESERVED_DESCRIPTORS, Math.ceil(limit / RESERVE_DIVISOR));
}

/** Of the text of /proc/PID/limits. */
export function parseDescriptorLimit(limits: string): number | undefined {
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? undefined : Number(soft);
}

/** How many connections fit: each has a descriptor of its own, and one to its endpoint. */
export function maxConnectionsFor(limit: number | undefined): number {
  return limit === undefined ? Number.POSITIVE_INFINITY : Math.floor(descriptorsForConnections(limit) / 2);
}
