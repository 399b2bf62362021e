/**
 * The deadlines of many sessions with one timer. Activity of a session only writes its `deadline`. The wheel looks at an
 * entry when its slot is swept, and moves the entry to a later slot if the deadline has moved meanwhile. The slots are arrays
 * and not Sets, for the reason given at `SessionSet`.
 */
export class TimeoutWheel<T extends WheelEntry> {
  readonly #slots: T[][];
  #currentTick = 0;
  /** All slots before this tick are empty. It is behind `#currentTick` while due entries have not been taken. */
  #sweptTick = 0;

  /** The wheel has `slots` ticks. An entry with a later deadline is looked at once per round. */
  constructor(slots: number) {
    this.#slots = Array.from({ length: slots }, (): T[] => []);
  }

  /** Ticks since the start. */
  get now(): number {
    return this.#currentTick;
  }

  add(entry: T): void {
    // Skips the slot of the current tick: it may be swept already, and the entry would wait for a whole round. Skips
    // the slot that is being swept too, because the sweep would never end.
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

  /** Must be called once per tick, followed by `takeDue`. Time stands still while the sweep is nearly one round behind. */
  tick(): void {
    if (this.#currentTick - this.#sweptTick < this.#slots.length - 2) this.#currentTick += 1;
  }

  /** Removes and returns an entry whose deadline has come, or returns undefined if no entry is due. */
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
  /** The deadline in ticks. It may become later at any time without a call to the wheel. */
  readonly deadline: number;
  /** The slot that contains the entry. Only the wheel writes it. */
  wheelSlot: number;
  wheelIndex: number;
}

export const TICK_MS = 1_000;

/**
 * Returns the number of ticks that surely last `ms`: one more than the whole ticks, because the current tick has begun
 * already.
 */
export function ticksFor(ms: number): number {
  return Math.ceil(ms / TICK_MS) + 1;
}
