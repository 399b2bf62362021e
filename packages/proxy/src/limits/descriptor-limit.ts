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

/**
 * For what else the process opens. Less than what `forConnections` keeps back: that is where connections are counted and told
 * whose they are; here is the last line, for whatever takes descriptors between its looks.
 */
const MIN_FREE_DESCRIPTORS = 64;

/**
 * A connection whose descriptor is this or higher is not to be accepted. At the limit itself libuv takes and closes connections
 * without a word to us, and nothing else of the process can open anything.
 */
export function descriptorCeiling(): number {
  const limit = descriptorLimit();
  return limit === undefined ? Number.POSITIVE_INFINITY : limit - Math.min(MIN_FREE_DESCRIPTORS, Math.floor(limit / 4));
}

// Whether this process has descriptors for one more connection (its own, and one to an endpoint). At the very limit libuv
// would accept and close whoever comes, uncounted; the store, health checks and logs would fail with the connections.

/** While there is no room, so long nobody looks again: an accept flood must not become a flood of looking. */
const RECHECK_INTERVAL_MS = 10;
const DESCRIPTORS_PER_CONNECTION = 2;

export interface DescriptorLimiterOptions {
  /** How many this process may have; undefined: nobody knows, and everybody is let in. */
  readonly limit: number | undefined;
  /** Those who take from the same room. */
  readonly workers: number;
  readonly countOpen?: () => number;
  /** Milliseconds of a clock that never jumps. */
  readonly now?: () => number;
}

export class DescriptorLimiter {
  readonly #limit: number | undefined;
  readonly #workers: number;
  readonly #countOpen: () => number;
  readonly #now: () => number;
  /** So many are let in before the next look. */
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

  /** For a connection that was accepted already. */
  admits(): boolean {
    if (this.#limit === undefined) return true;
    if (this.#remaining === 0 && !this.#recheck(this.#limit)) return false;
    this.#remaining -= 1;
    return true;
  }

  #recheck(limit: number): boolean {
    if (this.#now() < this.#fullUntil) return false;
    const room = descriptorsForConnections(limit) - this.#countOpen();
    if (room < 1) {
      this.#fullUntil = this.#now() + RECHECK_INTERVAL_MS;
      return false;
    }
    // Half, because the others take at the same time.
    this.#remaining = Math.max(1, Math.floor(room / DESCRIPTORS_PER_CONNECTION / this.#workers / 2));
    return true;
  }
}
