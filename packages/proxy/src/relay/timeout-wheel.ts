/**
 * Deadlines of many connections with one timer. An entry is looked at when its deadline comes, not when something
 * happens on it: activity only writes a number, and a deadline that has moved meanwhile is put off by the sweep. The slots
 * are no Sets, for the reason that `Members` is none.
 */
export class TimeoutWheel<T extends WheelEntry> {
  readonly #slots: T[][];
  #currentTick = 0;
  /** All before it are empty; behind `now` while what is due has not been taken. */
  #sweptTick = 0;

  /** `slots` ticks around; a deadline further away is looked at once per round. */
  constructor(slots: number) {
    this.#slots = Array.from({ length: slots }, (): T[] => []);
  }

  /** Ticks since the start. */
  get now(): number {
    return this.#currentTick;
  }

  add(entry: T): void {
    // Never into the slot of this moment, which would be looked at only after a whole round, nor into the one that is being
    // swept, which would never be empty.
    entry.wheelSlot = Math.max(
      this.#currentTick + 1,
      Math.min(entry.deadline, this.#sweptTick + this.#slots.length - 1),
    );
    const slot = this.#slotAt(entry.wheelSlot);
    entry.wheelIndex = slot.length;
    slot.push(entry);
  }

  remove(entry: T): void {
    const slot = this.#slotAt(entry.wheelSlot);
    const at = entry.wheelIndex;
    if (slot[at] !== entry) return;
    const last = slot.pop() as T;
    if (last === entry) return;
    slot[at] = last;
    last.wheelIndex = at;
  }

  /** The deadline of `entry` is nearer than it was. */
  advance(entry: T): void {
    this.remove(entry);
    this.add(entry);
  }

  /** To be called once per tick; what is due then is for `takeDue`. Time waits for a sweep that is nearly a round behind. */
  tick(): void {
    if (this.#currentTick - this.#sweptTick < this.#slots.length - 2) this.#currentTick += 1;
  }

  /** One whose deadline has come; it leaves the wheel. Undefined: all others have time. Until it is taken it may be put off. */
  takeDue(): T | undefined {
    for (; this.#sweptTick <= this.#currentTick; this.#sweptTick += 1) {
      const slot = this.#slotAt(this.#sweptTick);
      for (let entry = slot.pop(); entry !== undefined; entry = slot.pop()) {
        if (entry.deadline <= this.#currentTick) return entry;
        this.add(entry);
      }
    }
    return undefined;
  }

  #slotAt(tick: number): T[] {
    return this.#slots[tick % this.#slots.length] as T[];
  }
}

export interface WheelEntry {
  /** In ticks. May be moved to later at any time, without telling the wheel. */
  readonly deadline: number;
  /** The wheel's own. */
  wheelSlot: number;
  wheelIndex: number;
}

export const TICK_MS = 1_000;

/** Ticks of the wheel that are surely not shorter: one more than the whole ones, because the present one has begun already. */
export function ticksFor(ms: number): number {
  return Math.ceil(ms / TICK_MS) + 1;
}
