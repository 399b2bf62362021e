import { readdirSync, readFileSync, statSync } from 'node:fs';

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

/** Of the text of /proc/PID/limits. */
export function limitIn(limits: string): number | undefined {
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? undefined : Number(soft);
}
