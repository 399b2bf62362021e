import { type CertificateValidity, certificateValidityFor, type SecretObject } from '@weir/model';
import type { Clock, Timer } from '@weir/runtime';

export interface CertificateValidityOptions {
  readonly clock: Clock;
  /** Called when a certificate of the last `validityOf` has become valid or has expired. */
  readonly onValidityChange: () => void;
}

/** How often the validity is checked at least, because timers do not follow when the wall clock is set. */
const MAX_TIMER_MS = 3_600_000;

/** Computes which certificates are valid now, and reports when that changes. */
export class CertificateValidityTracker {
  readonly #clock: Clock;
  readonly #onValidityChange: () => void;
  #secrets: readonly SecretObject[] = [];
  #validity: ReadonlyMap<string, CertificateValidity> = new Map();
  /** Milliseconds since the epoch. */
  #computedAt = 0;
  /** When a certificate becomes valid or expires next, milliseconds since the epoch. */
  #nextChangeAt = Number.POSITIVE_INFINITY;
  #timer: Timer | undefined;

  constructor({ clock, onValidityChange }: CertificateValidityOptions) {
    this.#clock = clock;
    this.#onValidityChange = onValidityChange;
  }

  /** Returns the map for `Snapshot.validity`; the same object until a validity changes. */
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
    const isUnchanged =
      validity.size === this.#validity.size && [...validity].every(([path, each]) => this.#validity.get(path) === each);
    if (!isUnchanged) this.#validity = validity;
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
