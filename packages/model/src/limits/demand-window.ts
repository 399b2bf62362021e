/** How far back a demand is measured. */
const WINDOW_MS = 1_000;
/** A count that differs by more standard deviations of a Poisson process from its mean than this is a change, not chance. */
const MAX_DEVIATIONS = 3;

/**
 * Measures a demand from a counter: the mean of the last second, or the rate since the last sample if this rate clearly differs from the
 * mean. The mean of a second is steady enough for a demand of 20 per second; the last sample shows at once that a demand has moved.
 */
export class DemandWindow {
  readonly #samples: Sample[] = [];

  /**
   * Adds the value of a counter that only increases, at `atMs` of a clock that only increases. Call this method about every 100 ms.
   * Returns the demand.
   */
  add(atMs: number, counter: number): Demand {
    const samples = this.#samples;
    samples.push({ atMs, counter });
    while (samples[1] !== undefined && atMs - samples[1].atMs >= WINDOW_MS) samples.shift();
    const [oldest, previous] = [samples[0], samples.at(-2)];
    if (oldest === undefined || previous === undefined || atMs === previous.atMs)
      return { perSecond: 0, hasChanged: false };
    const mean = (counter - oldest.counter) / (atMs - oldest.atMs);
    const count = counter - previous.counter;
    const expected = mean * (atMs - previous.atMs);
    const hasChanged = Math.abs(count - expected) > MAX_DEVIATIONS * Math.sqrt(Math.max(1, expected));
    return { perSecond: 1_000 * (hasChanged ? count / (atMs - previous.atMs) : mean), hasChanged };
  }
}

export interface Demand {
  readonly perSecond: number;
  /** Whether the demand has clearly changed since the last sample, so that the member should exchange its lease now. */
  readonly hasChanged: boolean;
}

interface Sample {
  readonly atMs: number;
  readonly counter: number;
}
