// Admits at most a number of units, such as connections, in any second. The units are counted in slots of 10 ms, in cells
// of shared memory, so that all workers decide about the same count. A unit leaves the count up to 10 ms after its second.
// A limit that is used all the time therefore admits 1 % less than its rate.

const SLOT_NS = 10_000_000;
/** The slots of a second, and one more, because a second can begin and end within a slot. */
const SLOTS = 101;
/**
 * The maximum number of slots, a minute, that a worker may be late because its thread was paused after it had read the clock. If the newest
 * slot is further ahead, its number has wrapped, which takes 497 days without a unit.
 */
const MAX_LATE_SLOTS = 6_000;
/** The cell that holds the number of the newest slot, modulo 2^32; 0 before the first unit. The cells of the slots follow. */
const NEWEST_CELL = 0;
const FIRST_SLOT_CELL = 1;
export const SECOND_WINDOW_CELLS: number = FIRST_SLOT_CELL + SLOTS;

/**
 * The cell of a slot holds the number of units in its lower bits and the number of the slot, modulo 2^16, in its upper
 * bits. A cell with the number of another slot is out of date. Only if a window was unused for a multiple of 18 hours,
 * cells that are out of date count once more, for at most one second.
 */
const COUNT_BITS = 16;
/** The maximum number of units in a cell. All workers of a proxy together cannot admit as many in 10 ms. */
const MAX_COUNT = 2 ** COUNT_BITS - 1;

/** The units of the last second, as seen by one worker. */
export class SecondWindow {
  readonly #cells: Int32Array;
  /** The newest slot that this worker has seen. */
  #slot = Number.NaN;
  /** The units of the slots before `#slot`. */
  #olderUnits = 0;

  /** `cells` are `SECOND_WINDOW_CELLS` cells of shared memory. All of them are 0 when the first unit is counted. */
  constructor(cells: Int32Array) {
    this.#cells = cells;
  }

  /**
   * Counts `count` more units and returns true, or returns false if the last second would have more than `limit` units.
   * `now` is in nanoseconds of a clock that all threads share. `limit` is rounded to a whole number, and to 1 if it is
   * less than 1. A limit of 0 admits nothing.
   *
   * Workers that race never exceed the limit: only the cell of the newest slot changes, by compare-and-swap, and a worker
   * takes its units back if another worker has begun a newer slot in the meantime.
   */
  tryTake(limit: number, now: bigint, count: number = 1): boolean {
    if (limit <= 0) return false;
    const maxUnits = Math.max(1, Math.round(limit));
    for (;;) {
      const slot = this.#enterSlot(slotAt(now));
      const read = Atomics.load(this.#cells, cellOf(slot));
      const units = unitsIn(read, slot);
      if (units + count > MAX_COUNT || this.#olderUnits + units + count > maxUnits) return false;
      if (!this.#replace(slot, read, units + count)) continue;
      if (Atomics.load(this.#cells, NEWEST_CELL) === (slot | 0)) return true;
      this.giveBack(count);
    }
  }

  /** Takes back `count` of the units that the last call of `tryTake` counted. */
  giveBack(count: number = 1): void {
    const slot = this.#slot;
    for (;;) {
      const read = Atomics.load(this.#cells, cellOf(slot));
      const units = unitsIn(read, slot);
      if (units === 0 || this.#replace(slot, read, Math.max(0, units - count))) return;
    }
  }

  /** Makes `slot` the newest slot and returns it, or returns the newest slot if it is newer. */
  #enterSlot(slot: number): number {
    const newest = newestSlot(this.#cells, slot);
    if (newest !== this.#slot) {
      this.#slot = newest;
      // Must be counted after `newest` has become the newest slot, because then the older slots no longer change.
      this.#olderUnits = unitsBefore(this.#cells, newest);
    }
    return newest;
  }

  #replace(slot: number, read: number, units: number): boolean {
    return Atomics.compareExchange(this.#cells, cellOf(slot), read, (slot << COUNT_BITS) | units) === read;
  }
}

/** Returns the number of units that all workers have counted in the last second before `now`. */
export function unitsInSecond(cells: Int32Array, now: bigint): number {
  const slot = slotAt(now);
  // Most windows have no unit in the last second. Skips reading their cells.
  if (((slot - Atomics.load(cells, NEWEST_CELL)) | 0) >= SLOTS) return 0;
  return unitsIn(Atomics.load(cells, cellOf(slot)), slot) + unitsBefore(cells, slot);
}

function newestSlot(cells: Int32Array, slot: number): number {
  for (;;) {
    const newest = Atomics.load(cells, NEWEST_CELL);
    const ahead = (newest - slot) | 0;
    if (newest !== 0 && ahead >= 0 && ahead < MAX_LATE_SLOTS) return slot + ahead;
    if (Atomics.compareExchange(cells, NEWEST_CELL, newest, slot | 0) === newest) return slot;
  }
}

/**
 * Returns the units of the slots before `slot`. Reads without `Atomics`: the caller has read another cell of the window with
 * `Atomics` before, so that processors show what other workers had counted until then. A worker that counts later than that in
 * an older slot finds a newer slot, and takes its units back.
 */
function unitsBefore(cells: Int32Array, slot: number): number {
  let units = 0;
  for (let older = slot - SLOTS + 1; older < slot; older += 1) units += unitsIn(cells[cellOf(older)] as number, older);
  return units;
}

function slotAt(now: bigint): number {
  return Math.floor(Number(now) / SLOT_NS) + SLOTS;
}

function cellOf(slot: number): number {
  return FIRST_SLOT_CELL + (slot % SLOTS);
}

/** Returns the number of units in the cell of the slot, or 0 if the cell is out of date. */
function unitsIn(cell: number, slot: number): number {
  return cell >>> COUNT_BITS === (slot & MAX_COUNT) ? cell & MAX_COUNT : 0;
}
