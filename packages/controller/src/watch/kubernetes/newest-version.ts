/** A server that lags does so for seconds. One that was restored from a backup does not come back to where it was: from then on it is taken. */
const RESTORED_SERVER_AFTER_MS = 120_000;

export type Freshness = { readonly kind: 'fresh' } | { readonly kind: 'stale'; readonly newest: bigint };

/**
 * The newest version that was read of one kind: of several API servers behind one address one may lag, and what it says must not undo
 * what another one said. Versions of one kind are integers that only go up (a promise of Kubernetes since 1.35, and so before); what
 * is none is always fresh.
 */
export class NewestVersion {
  #newest: bigint | undefined;
  /** On a clock that never jumps. */
  #staleSince: number | undefined;

  /** Something was read at all. */
  get isKnown(): boolean {
    return this.#newest !== undefined;
  }

  observe(version: string | undefined): void {
    const number = versionNumber(version);
    if (number !== undefined && (this.#newest === undefined || number > this.#newest)) this.#newest = number;
  }

  /** Whether a list of this version may be used; then it is seen. `now`: milliseconds of a clock that never jumps. */
  accept(version: string | undefined, now: number): Freshness {
    const number = versionNumber(version);
    if (number !== undefined && this.#newest !== undefined && number < this.#newest) {
      this.#staleSince ??= now;
      if (now - this.#staleSince < RESTORED_SERVER_AFTER_MS) return { kind: 'stale', newest: this.#newest };
      this.#newest = number;
    }
    this.#staleSince = undefined;
    this.observe(version);
    return { kind: 'fresh' };
  }
}

function versionNumber(version: string | undefined): bigint | undefined {
  return version !== undefined && /^\d+$/.test(version) ? BigInt(version) : undefined;
}
