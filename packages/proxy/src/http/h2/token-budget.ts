/**
 * A token bucket for the useless work that a peer may cause. Tokens come back with time and with useful work, so a long
 * and busy connection is never short of tokens.
 */
export class TokenBudget {
  readonly #capacity: number;
  readonly #perSecond: number;
  #tokens: number;
  #filledMs: number;

  /** `nowMs` is the current time in milliseconds. */
  constructor(capacity: number, perSecond: number, nowMs: number) {
    this.#capacity = capacity;
    this.#perSecond = perSecond;
    this.#tokens = capacity;
    this.#filledMs = nowMs;
  }

  /** Takes a token. Returns false if there is none. */
  take(now: () => number): boolean {
    if (this.#tokens < 1) {
      const nowMs = now();
      this.give(((nowMs - this.#filledMs) / 1_000) * this.#perSecond);
      this.#filledMs = nowMs;
      if (this.#tokens < 1) return false;
    }
    this.#tokens -= 1;
    return true;
  }

  give(tokens: number): void {
    const sum = this.#tokens + tokens;
    this.#tokens = sum < this.#capacity ? sum : this.#capacity;
  }
}
