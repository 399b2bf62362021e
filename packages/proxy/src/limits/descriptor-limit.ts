// Keeps file descriptors free for the store, health checks and logs. If no descriptor were free, the process could open
// no file or socket, and libuv would accept connections and close them at once, uncounted.
import { readFileSync } from 'node:fs';

const RESERVE_DIVISOR = 3;
const MAX_RESERVED_DESCRIPTORS = 256;
/** The descriptors of a relayed connection: one to the client and one to the endpoint. */
const DESCRIPTORS_PER_CONNECTION = 2;

/**
 * Returns how many descriptors this process may open, or undefined if the system has no /proc. This is the soft limit.
 * Node raises the soft limit to the hard limit when a process starts.
 */
export function descriptorLimit(): number | undefined {
  try {
    return parseDescriptorLimit(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    return undefined;
  }
}

/**
 * Returns the number of descriptors that are available to connections if the process may open `limit` descriptors. The
 * other descriptors are reserved for the rest of the process.
 */
export function descriptorsForConnections(limit: number): number {
  return limit - Math.min(MAX_RESERVED_DESCRIPTORS, Math.ceil(limit / RESERVE_DIVISOR));
}

/**
 * Returns the number of descriptors that listeners may use: half of the descriptors that are not reserved. The other
 * half remains for connections. Infinity if the limit is not known.
 */
export function descriptorsForListeners(limit: number | undefined): number {
  return limit === undefined ? Number.POSITIVE_INFINITY : Math.floor(descriptorsForConnections(limit) / 2);
}

/**
 * Returns the soft limit of open files from the text of /proc/PID/limits, or undefined if the text has no such limit.
 */
export function parseDescriptorLimit(limits: string): number | undefined {
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? undefined : Number(soft);
}

/** Returns how many connections may be open under this descriptor limit, or Infinity if the limit is not known. */
export function maxConnectionsFor(limit: number | undefined): number {
  return limit === undefined
    ? Number.POSITIVE_INFINITY
    : Math.floor(descriptorsForConnections(limit) / DESCRIPTORS_PER_CONNECTION);
}

/**
 * The number of descriptors that accepted connections never use, not even between two checks of `DescriptorLimiter`.
 * This number is lower than the reserve that the checks keep free (see `descriptorsForConnections`).
 */
const MIN_FREE_DESCRIPTORS = 64;

/**
 * Returns the lowest descriptor that connections must not use. An accepted connection with this descriptor or a higher
 * one must be closed.
 */
export function descriptorCeiling(): number {
  const limit = descriptorLimit();
  return limit === undefined ? Number.POSITIVE_INFINITY : limit - Math.min(MIN_FREE_DESCRIPTORS, Math.floor(limit / 4));
}

/**
 * The minimum time between two counts of the open descriptors while the process is full. Without a minimum, each
 * connection of a flood would cause a count.
 */
const RECHECK_INTERVAL_MS = 10;

export interface DescriptorLimiterOptions {
  /** How many descriptors the process may open. If undefined, every connection is admitted. */
  readonly limit: number | undefined;
  /** How many workers share the limit. */
  readonly workers: number;
  /** Returns how many descriptors the process has open. */
  readonly countOpen: () => number;
  /** Returns milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

/**
 * Decides whether the process has descriptors for one more connection. Counts the open descriptors only when
 * `#remaining` is 0, and not for each connection.
 */
export class DescriptorLimiter {
  readonly #limit: number | undefined;
  readonly #workers: number;
  readonly #countOpen: () => number;
  readonly #now: () => number;
  /** How many connections are admitted before the open descriptors are counted again. */
  #remaining = 0;
  #fullUntil = Number.NEGATIVE_INFINITY;

  constructor({ limit, workers, countOpen, now = () => performance.now() }: DescriptorLimiterOptions) {
    this.#limit = limit;
    this.#workers = workers;
    this.#countOpen = countOpen;
    this.#now = now;
  }

  /**
   * Reports whether a connection that was just accepted may continue. The descriptor of the connection already counts
   * as open.
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
    // Uses only half of this worker's share of the free descriptors, because other workers also admit connections
    // before the next count.
    this.#remaining = Math.max(1, Math.floor(free / DESCRIPTORS_PER_CONNECTION / this.#workers / 2));
    return true;
  }
}
