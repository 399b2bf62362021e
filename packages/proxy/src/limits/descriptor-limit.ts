// Keeps file descriptors free for the store, health checks and logs. At the limit itself libuv would accept connections and
// close them at once, uncounted, and nothing else in the process could open a file or socket.
import { readdirSync, readFileSync, statSync } from 'node:fs';

const RESERVE_DIVISOR = 3;
const MAX_RESERVED_DESCRIPTORS = 256;
const DESCRIPTOR_FOLDER = '/proc/self/fd';
/** The descriptors of a relayed connection: one to the client and one to the endpoint. */
const DESCRIPTORS_PER_CONNECTION = 2;

/** Returns how many descriptors this process has open, or 0 if the system has no /proc. */
export function countOpenDescriptors(): number {
  try {
    // Since Linux 6.2 the size of the folder is the number of open descriptors.
    const { size } = statSync(DESCRIPTOR_FOLDER);
    return size > 0 ? size : readdirSync(DESCRIPTOR_FOLDER).length;
  } catch {
    return 0;
  }
}

/**
 * Returns how many descriptors this process may open, or undefined if the system has no /proc. Node raises the soft
 * limit to the hard limit when it starts.
 */
export function descriptorLimit(): number | undefined {
  try {
    return parseDescriptorLimit(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    return undefined;
  }
}

/** Returns how many of `limit` descriptors connections may use. The rest of the process has the others. */
export function descriptorsForConnections(limit: number): number {
  return limit - Math.min(MAX_RESERVED_DESCRIPTORS, Math.ceil(limit / RESERVE_DIVISOR));
}

/** Parses the text of /proc/PID/limits. */
export function parseDescriptorLimit(limits: string): number | undefined {
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? undefined : Number(soft);
}

/** Returns how many connections fit into a limit of descriptors, or Infinity if the limit is not known. */
export function maxConnectionsFor(limit: number | undefined): number {
  return limit === undefined
    ? Number.POSITIVE_INFINITY
    : Math.floor(descriptorsForConnections(limit) / DESCRIPTORS_PER_CONNECTION);
}

/**
 * The number of descriptors that accepted connections never use. It is lower than the reserve of
 * `descriptorsForConnections`: that reserve is checked before a connection is admitted, and this one protects the
 * process between two checks.
 */
const MIN_FREE_DESCRIPTORS = 64;

/** Returns a descriptor number. An accepted connection with this or a higher descriptor must be closed. */
export function descriptorCeiling(): number {
  const limit = descriptorLimit();
  return limit === undefined ? Number.POSITIVE_INFINITY : limit - Math.min(MIN_FREE_DESCRIPTORS, Math.floor(limit / 4));
}

/**
 * The minimum time between two checks of a full process, so that a flood of connections does not cause a flood of
 * checks.
 */
const RECHECK_INTERVAL_MS = 10;

export interface DescriptorLimiterOptions {
  /** How many descriptors the process may open; undefined admits every connection. */
  readonly limit: number | undefined;
  /** How many workers share the limit. */
  readonly workers: number;
  readonly countOpen?: () => number;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

/** Whether the process has descriptors for one more connection. Counts the open descriptors only now and then. */
export class DescriptorLimiter {
  readonly #limit: number | undefined;
  readonly #workers: number;
  readonly #countOpen: () => number;
  readonly #now: () => number;
  /** How many connections are admitted before the next check. */
  #remaining = 0;
  #fullUntil = Number.NEGATIVE_INFINITY;

  constructor({
    limit,
    workers,
    countOpen = countOpenDescriptors,
    now = () => performance.now(),
  }: DescriptorLimiterOptions) {
    this.#limit = limit;
    this.#workers = workers;
    this.#countOpen = countOpen;
    this.#now = now;
  }

  /**
   * Returns whether a connection may continue. It is accepted already, so its own descriptor is among the open ones.
   */
  admits(): boolean {
    if (this.#limit === undefined) return true;
    if (this.#remaining === 0 && !this.#recheck(this.#limit)) return false;
    this.#remaining -= 1;
    return true;
  }

  #recheck(limit: number): boolean {
    if (this.#now() < this.#fullUntil) return false;
    const free = descriptorsForConnections(limit) - this.#countOpen();
    if (free < 1) {
      this.#fullUntil = this.#now() + RECHECK_INTERVAL_MS;
      return false;
    }
    // Half of this worker's share, because the other workers admit connections meanwhile.
    this.#remaining = Math.max(1, Math.floor(free / DESCRIPTORS_PER_CONNECTION / this.#workers / 2));
    return true;
  }
}
