// Whether this process has descriptors for one more connection (its own, and one to an endpoint). At the very limit libuv
// would accept and close whoever comes, uncounted; the store, health checks and logs would fail with the connections.
import { countOpenDescriptors, descriptorsForConnections } from '../open-descriptors.ts';

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
