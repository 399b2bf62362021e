import { chargeToRate, rateBurstNs } from '@weir/model';

const SLOT_MS = 10;
/** The slots of a second, and one more, because a second can begin and end within a slot. */
const SLOTS = 101;
const SECONDS_PER_NS = 1e-9;
const NS_PER_MS = 1_000_000;

/** Admits units within a share of any second and a mean rate, as each proxy does, but without other threads. */
export class RateLimiter {
  readonly #counts = new Uint32Array(SLOTS);
  #newest = 0;
  #sum = 0;
  #paidUntil = 0n;
  #meanRate = 0;

  /** Sets the mean rate. The credit stays the same number of units. */
  setMeanRate(meanRate: number, nowMs: number): void {
    if (meanRate === this.#meanRate) return;
    const credit = this.#credit(nowMs);
    this.#meanRate = meanRate;
    this.#paidUntil = nanoseconds(nowMs) - BigInt(Math.floor(credit / (meanRate * SECONDS_PER_NS)));
  }

  /** Takes as many of `count` units as the share of a second and the mean rate leave at `nowMs`, and returns their number. */
  take(count: number, share: number, nowMs: number): number {
    const free = Math.min(share - this.taken(nowMs), Math.floor(this.#credit(nowMs) + 1e-6));
    const taken = Math.max(0, Math.min(count, free));
    const limit = { ratePerSecond: this.#meanRate, burstNs: rateBurstNs(this.#meanRate) };
    if (taken > 0) this.#paidUntil = chargeToRate(this.#paidUntil, taken, { limit, now: nanoseconds(nowMs) });
    const cell = this.#newest % SLOTS;
    this.#counts[cell] = (this.#counts[cell] ?? 0) + taken;
    this.#sum += taken;
    return taken;
  }

  /** Returns the units of the last second. */
  taken(nowMs: number): number {
    const slot = Math.floor(nowMs / SLOT_MS);
    this.#newest = Math.max(this.#newest, slot - SLOTS);
    while (this.#newest < slot) {
      this.#newest += 1;
      const cell = this.#newest % SLOTS;
      this.#sum -= this.#counts[cell] ?? 0;
      this.#counts[cell] = 0;
    }
    return this.#sum;
  }

  #credit(nowMs: number): number {
    const burstNs = Number(rateBurstNs(this.#meanRate));
    return Math.min(burstNs, Number(nanoseconds(nowMs) - this.#paidUntil)) * SECONDS_PER_NS * this.#meanRate;
  }
}

function nanoseconds(ms: number): bigint {
  return BigInt(ms * NS_PER_MS);
}
