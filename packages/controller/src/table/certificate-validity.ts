import { type CertificateValidity, certificateValidityFor, type SecretObject } from '@weir/model';
import type { Clock, Timer } from '@weir/runtime';

export interface CertificateValidityOptions {
  readonly clock: Clock;
  /** The time says something else now of the certificates that were asked about last. */
  readonly onValidityChange: () => void;
}

/** Timers do not follow a clock that is set, and dates do. */
const MAX_TIMER_MS = 3_600_000;

/** What the time says of certificates, from asking to asking. */
export class CertificateValidityTracker {
  readonly #clock: Clock;
  readonly #onValidityChange: () => void;
  #secrets: readonly SecretObject[] = [];
  #validity: ReadonlyMap<string, CertificateValidity> = new Map();
  /** When it was found, and when it will be another; milliseconds since the epoch. */
  #computedAt = 0;
  #nextChangeAt = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;

  constructor({ clock, onValidityChange }: CertificateValidityOptions) {
    this.#clock = clock;
    this.#onValidityChange = onValidityChange;
  }

  /** As in `Snapshot`; the same map until it says something else. */
  validityOf(secrets: readonly SecretObject[]): ReadonlyMap<string, CertificateValidity> {
    if (secrets !== this.#secrets || !this.#isCurrent()) this.#compute(secrets);
    return this.#validity;
  }

  close(): void {
    this.#timer?.cancel();
  }

  #isCurrent(): boolean {
    const now = this.#clock.now();
    return this.#computedAt <= now && now < this.#nextChangeAt;
  }

  #compute(secrets: readonly SecretObject[]): void {
    const now = this.#clock.now();
    const { validity, nextChangeAt = Number.POSITIVE_INFINITY } = certificateValidityFor(secrets, now);
    const isSame =
      validity.size === this.#validity.size && [...validity].every(([path, each]) => this.#validity.get(path) === each);
    if (!isSame) this.#validity = validity;
    this.#secrets = secrets;
    this.#computedAt = now;
    this.#nextChangeAt = nextChangeAt;
    this.#schedule();
  }

  #schedule(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#nextChangeAt === Number.POSITIVE_INFINITY) return;
    const ms = Math.min(this.#nextChangeAt - this.#clock.now(), MAX_TIMER_MS);
    this.#timer = this.#clock.setTimeout(() => (this.#isCurrent() ? this.#schedule() : this.#onValidityChange()), ms);
  }
}
