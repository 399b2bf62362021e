// Counts what a simulated fleet admits, and compares the counts with the limit.

export const STEP_MS = 10;
/** The shares, windows and estimates settle before the first measured second. */
export const WARM_UP_MS = 5_000;
/** A tenant has the whole limit in a second in which it admits this part of the limit. */
const REACHED_PART = 0.95;
/** Units are counted for these tenants only, to bound the memory. */
const MAX_MEASURED_TENANTS = 100;

/** How the admitted units compare with the limit. */
export interface CountedUnits {
  /** Of the worst tenant's worst 10 seconds: the admitted units, divided by the smaller of the offered units and the limit, minus 1. */
  readonly worstError: number;
  /** The admitted units of the 10 seconds with the most, divided by the limit, minus 1. */
  readonly highestError: number;
  /** The admitted units of all seconds, divided by the smaller of the offered units and the limit. */
  readonly used: number;
  /** Admitted units in the busiest second, as a part of the limit. */
  readonly busiestSecond: number;
  /** The longest time from a move until a second begins in which 95 % of the limit are admitted; undefined without moves. */
  readonly reachedAfterSeconds: number | undefined;
}

interface MeasuredLimit {
  readonly limit: number;
  readonly seconds: number;
  readonly moves?: readonly number[];
}

export class UnitCounts {
  /** By tenant, then by step. */
  readonly #admitted: readonly Uint32Array[];
  readonly #offered: readonly Uint32Array[];

  constructor({ tenants, seconds }: { readonly tenants: number; readonly seconds: number }) {
    const steps = (seconds * 1_000) / STEP_MS;
    const measured = { length: Math.min(MAX_MEASURED_TENANTS, tenants) };
    this.#admitted = Array.from(measured, () => new Uint32Array(steps));
    this.#offered = Array.from(measured, () => new Uint32Array(steps));
  }

  add(tenant: number, nowMs: number, units: { readonly admitted: number; readonly offered: number }): void {
    addToStep(this.#admitted[tenant], nowMs, units.admitted);
    addToStep(this.#offered[tenant], nowMs, units.offered);
  }

  measure({ limit, seconds, moves = [] }: MeasuredLimit): CountedUnits {
    const reached: number[] = [];
    let worstError = 0;
    let highestError = -1;
    let admittedSum = 0;
    let possibleSum = 0;
    let busiestSecond = 0;
    for (const [tenant, admitted] of this.#admitted.entries()) {
      const sumOf = runningSums(admitted);
      const offeredSumOf = runningSums(this.#offered[tenant] ?? []);
      for (const move of moves) {
        let at = move * 1_000;
        while (at + 1_000 < seconds * 1_000 && sumOf(at, 1_000) < REACHED_PART * limit) at += STEP_MS;
        reached.push(at / 1_000 - move);
      }
      for (let from = WARM_UP_MS; from + 1_000 <= seconds * 1_000; from += STEP_MS) {
        busiestSecond = Math.max(busiestSecond, sumOf(from, 1_000) / limit);
        if (from + 10_000 > seconds * 1_000) continue;
        const possible = Math.min(10 * limit, offeredSumOf(from, 10_000));
        if (possible === 0) continue;
        const sum = sumOf(from, 10_000);
        worstError = Math.min(worstError, sum / possible - 1);
        highestError = Math.max(highestError, sum / (10 * limit) - 1);
        admittedSum += sum;
        possibleSum += possible;
      }
    }
    const reachedAfterSeconds = reached.length === 0 ? undefined : Math.max(...reached);
    return { worstError, highestError, used: admittedSum / possibleSum, busiestSecond, reachedAfterSeconds };
  }
}

/** Adds units to the step at `nowMs`. Does nothing for a tenant that is not measured. */
function addToStep(counts: Uint32Array | undefined, nowMs: number, units: number): void {
  const step = nowMs / STEP_MS;
  if (counts !== undefined) counts[step] = (counts[step] ?? 0) + units;
}

/** Returns a function for the sum of the `lengthMs` milliseconds from `fromMs` on. */
function runningSums(counts: Iterable<number>): (fromMs: number, lengthMs: number) => number {
  const sums = [0];
  for (const count of counts) sums.push((sums.at(-1) ?? 0) + count);
  return (fromMs, lengthMs) => (sums[(fromMs + lengthMs) / STEP_MS] ?? 0) - (sums[fromMs / STEP_MS] ?? 0);
}
