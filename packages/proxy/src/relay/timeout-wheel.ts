/**
 * Deadlines of many connections with one timer. An entry is looked at when its deadline comes, not when something
 * happens on it: activity only writes a number, and a deadline that has moved meanwhile is put off by the sweep. The slots
 * are no Sets, for the reason that `Members` is none.
 */
export class TimeoutWheel<T extends Deadlined> {
  readonly #slots: T[][];
  readonly #onExpired: (entry: T) => void;
  #now = 0;

  /** `slots` ticks around; a deadline further away is looked at once per round. */
  constructor(slots: number, onExpired: (entry: T) => void) {
    this.#slots = Array.from({ length: slots }, (): T[] => []);
    this.#onExpired = onExpired;
  }

  /** Ticks since the start. */
  get now(): number {
    return this.#now;
  }

  add(entry: T): void {
    // Never into the slot of this moment: it would be looked at only after a whole round.
    entry.wheelSlot = Math.max(this.#now + 1, Math.min(entry.deadline, this.#now + this.#slots.length - 1));
    const slot = this.#slotAt(entry.wheelSlot);
    entry.wheelAt = slot.length;
    slot.push(entry);
  }

  remove(entry: T): void {
    const slot = this.#slotAt(entry.wheelSlot);
    const at = entry.wheelAt;
    if (slot[at] !== entry) return;
    const last = slot.pop() as T;
    if (last === entry) return;
    slot[at] = last;
    last.wheelAt = at;
  }

  /** The deadline of `entry` is nearer than it was. */
  advance(entry: T): void {
    this.remove(entry);
    this.add(entry);
  }

  /** To be called once per tick. */
  tick(): void {
    this.#now += 1;
    const due = this.#slotAt(this.#now);
    for (let entry = due.pop(); entry !== undefined; entry = due.pop()) {
      if (entry.deadline > this.#now) this.add(entry);
      else this.#onExpired(entry);
    }
  }

  #slotAt(tick: number): T[] {
    return this.#slots[tick % this.#slots.length] as T[];
  }
}

export interface Deadlined {
  /** In ticks. May be moved to later at any time, without telling the wheel. */
  readonly deadline: number;
  /** The wheel's own. */
  wheelSlot: number;
  wheelAt: number;
}
