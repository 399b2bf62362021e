// Whether this process has descriptors for one more connection (its own, and one to an endpoint). At the very limit libuv
// would accept and close whoever comes, uncounted; the store, health checks and logs would fail with the connections.
import { forConnections, openDescriptors } from '../open-descriptors.ts';

/** While there is no room, so long nobody looks again: an accept flood must not become a flood of looking. */
const AGAIN_MS = 10;
const EACH_CONNECTION = 2;

export interface DescriptorRoomOptions {
  /** How many this process may have; undefined: nobody knows, and everybody is let in. */
  readonly limit: number | undefined;
  /** Those who take from the same room. */
  readonly workers: number;
  readonly open?: () => number;
  /** Milliseconds of a clock that never jumps. */
  readonly now?: () => number;
}

export class DescriptorRoom {
  readonly #limit: number | undefined;
  readonly #workers: number;
  readonly #open: () => number;
  readonly #now: () => number;
  /** So many are let in before the next look. */
  #left = 0;
  #fullUntil = Number.NEGATIVE_INFINITY;

  constructor({ limit, workers, open = openDescriptors, now = () => performance.now() }: DescriptorRoomOptions) {
    this.#limit = limit;
    this.#workers = workers;
    this.#open = open;
    this.#now = now;
  }

  /** For a connection that was accepted already. */
  admits(): boolean {
    if (this.#limit === undefined) return true;
    if (this.#left === 0 && !this.#look(this.#limit)) return false;
    this.#left -= 1;
    return true;
  }

  #look(limit: number): boolean {
    if (this.#now() < this.#fullUntil) return false;
    const room = forConnections(limit) - this.#open();
    if (room < 1) {
      this.#fullUntil = this.#now() + AGAIN_MS;
      return false;
    }
    // Half, because the others take at the same time.
    this.#left = Math.max(1, Math.floor(room / EACH_CONNECTION / this.#workers / 2));
    return true;
  }
}
