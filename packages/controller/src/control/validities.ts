import { type SecretObject, type Validity, validityFor } from '@weir/model';
import type { Clock, Timer } from '@weir/runtime';

export interface ValiditiesOptions {
  readonly clock: Clock;
  /** The time says something else now of the certificates that were asked about last. */
  readonly onTurn: () => void;
}

/** Timers do not follow a clock that is set, and dates do. */
const LONGEST_WAIT_MS = 3_600_000;

/** What the time says of certificates, from asking to asking. */
export class Validities {
  readonly #clock: Clock;
  readonly #onTurn: () => void;
  #secrets: readonly SecretObject[] = [];
  #validity: ReadonlyMap<string, Validity> = new Map();
  /** When it was found, and when it will be another; milliseconds since the epoch. */
  #foundAt = 0;
  #nextAt = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;

  constructor({ clock, onTurn }: ValiditiesOptions) {
    this.#clock = clock;
    this.#onTurn = onTurn;
  }

  /** As in `Snapshot`; the same map until it says something else. */
  of(secrets: readonly SecretObject[]): ReadonlyMap<string, Validity> {
    if (secrets !== this.#secrets || !this.#isStanding()) this.#find(secrets);
    return this.#validity;
  }

  close(): void {
    this.#timer?.cancel();
  }

  #isStanding(): boolean {
    const now = this.#clock.now();
    return this.#foundAt <= now && now < this.#nextAt;
  }

  #find(secrets: readonly SecretObject[]): void {
    const now = this.#clock.now();
    const { validity, nextAt = Number.POSITIVE_INFINITY } = validityFor(secrets, now);
    const isSame =
      validity.size === this.#validity.size && [...validity].every(([path, each]) => this.#validity.get(path) === each);
    if (!isSame) this.#validity = validity;
    this.#secrets = secrets;
    this.#foundAt = now;
    this.#nextAt = nextAt;
    this.#wait();
  }

  #wait(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#nextAt === Number.POSITIVE_INFINITY) return;
    const ms = Math.min(this.#nextAt - this.#clock.now(), LONGEST_WAIT_MS);
    this.#timer = this.#clock.setTimeout(() => (this.#isStanding() ? this.#wait() : this.#onTurn()), ms);
  }
}
