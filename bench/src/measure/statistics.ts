export type Quartiles = {
  readonly lowest: number;
  readonly lowerQuartile: number;
  readonly median: number;
  readonly upperQuartile: number;
  readonly highest: number;
};

export function median(values: readonly number[]): number {
  return quantile(sorted(values), 0.5);
}

export function quartilesOf(values: readonly number[]): Quartiles {
  const ordered = sorted(values);
  return {
    lowest: quantile(ordered, 0),
    lowerQuartile: quantile(ordered, 0.25),
    median: quantile(ordered, 0.5),
    upperQuartile: quantile(ordered, 0.75),
    highest: quantile(ordered, 1),
  };
}

/** `q` from 0 to 1; of few values the highest are mostly one reading. */
export function percentile(values: readonly number[], q: number): number {
  return quantile(sorted(values), q);
}

/** Pair by pair, since the two of a pair ran next to each other and the machine differs from hour to hour. */
export function pairwiseRatios(values: readonly number[], references: readonly number[]): number[] {
  if (values.length !== references.length) throw new Error(`${values.length} values, ${references.length} references`);
  return values.map((value, index) => value / (references[index] ?? Number.NaN));
}

/** Linear between the two nearest of the sorted values (Hyndman and Fan 1996, definition 7). */
function quantile(ordered: readonly number[], q: number): number {
  const position = (ordered.length - 1) * q;
  const below = ordered[Math.floor(position)];
  const above = ordered[Math.ceil(position)];
  if (below === undefined || above === undefined) throw new Error('no values');
  return below + (above - below) * (position - Math.floor(position));
}

function sorted(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b);
}

/** Latencies in steps of 1 µs up to a second; what is longer counts as a second. */
export class LatencyHistogram {
  #counts = new Uint32Array(1_000_001);
  #total = 0;

  add(ms: number): void {
    const microseconds = Math.min(this.#counts.length - 1, Math.max(0, Math.round(ms * 1000)));
    this.#counts[microseconds] = (this.#counts[microseconds] ?? 0) + 1;
    this.#total++;
  }

  get count(): number {
    return this.#total;
  }

  /** In µs: the least latency that the share `q` of all do not exceed (nearest rank). NaN when there are none. */
  percentile(q: number): number {
    const rank = Math.max(1, Math.ceil(q * this.#total));
    let seen = 0;
    for (const [microseconds, count] of this.#counts.entries()) {
      seen += count;
      if (seen >= rank) return microseconds;
    }
    return Number.NaN;
  }
}
