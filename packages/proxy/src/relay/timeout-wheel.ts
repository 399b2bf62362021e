/**
 * Keeps the deadlines of many sessions with a single timer. When a session is active, it only writes a later `deadline`
 * to its own field. When the wheel sweeps a slot, it moves each entry that is not due yet to a later slot. The slots
 * are arrays and not Sets, for the reason given at `SessionSet`.
 */
export class TimeoutWheel<T extends WheelEntry> {
  readonly #slots: T[][];
  #currentTick = 0;
  /**
   * The tick whose slot is swept next. All ticks before this tick have been swept and have no entries left. Greater
   * than `#currentTick` only when `takeDue` has returned all due entries.
   */
  #sweptTick = 0;

  /**
   * Creates a wheel with one slot for each of `slots` ticks. An entry whose deadline is more than one round of the
   * wheel away is moved once per round.
   */
  constructor(slots: number) {
    this.#slots = Array.from({ length: slots }, (): T[] => []);
  }

  /** The current time, as the number of ticks since the start. */
  get now(): number {
    return this.#currentTick;
  }

  add(entry: T): void {
    // Skips the slot of the current tick, because that slot may have been swept already, and the entry would wait there
    // for a whole round. Also skips the slot that is being swept, because the sweep would never end.
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

  /** Must be called when the deadline of an entry has become earlier. */
  advance(entry: T): void {
    this.remove(entry);
    this.add(entry);
  }

  /**
   * Advances the time by one tick. Must be called once per tick, followed by `takeDue`. Does nothing while the sweep is
   * nearly one round behind.
   */
  tick(): void {
    if (this.#currentTick - this.#sweptTick < this.#slots.length - 2) this.#currentTick += 1;
  }

  /** Removes and returns an entry whose deadline has been reached, or returns undefined if there is none. */
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
  /** The deadline in ticks. The owner of the entry may set a later tick at any time without a call to the wheel. */
  readonly deadline: number;
  /** The tick of the slot that contains the entry. Only the wheel writes this field. */
  wheelSlot: number;
  wheelIndex: number;
}

export const TICK_MS = 1_000;

/**
 * Returns the number of ticks after which at least `ms` have passed. Includes one extra tick, because part of the
 * current tick has already passed.
 */
export function ticksFor(ms: number): number {
  return Math.ceil(ms / TICK_MS) + 1;
}
