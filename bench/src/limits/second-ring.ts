const SLOT_MS = 10;
/** The slots of a second, and one more, because a second can begin and end within a slot. */
const SLOTS = 101;

/** Admits at most a number of units in any second, as each proxy does, but without other threads. */
export class SecondRing {
  readonly #counts = new Uint32Array(SLOTS);
  #newest = 0;
  #sum = 0;

  /** Takes as many of `count` units as the limit leaves at `nowMs`, and returns their number. */
  take(count: number, limit: number, nowMs: number): number {
    const taken = Math.max(0, Math.min(count, limit - this.taken(nowMs)));
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
}
