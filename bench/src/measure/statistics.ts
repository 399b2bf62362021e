/** Order statistics of a list of readings. Result files contain only summaries, not the readings. */
export type Summary = {
  readonly count: number;
  readonly lowest: number;
  readonly lowerQuartile: number;
  readonly median: number;
  readonly upperQuartile: number;
  readonly highest: number;
};

/** A summary with the 99th percentile, for readings whose 99th percentile has a target. */
export type TailSummary = Summary & { readonly p99: number };

export function summarize(values: readonly number[]): Summary {
  const ordered = sorted(values);
  return {
    count: ordered.length,
    lowest: quantile(ordered, 0),
    lowerQuartile: quantile(ordered, 0.25),
    median: quantile(ordered, 0.5),
    upperQuartile: quantile(ordered, 0.75),
    highest: quantile(ordered, 1),
  };
}

export function summarizeTail(values: readonly number[]): TailSummary {
  return { ...summarize(values), p99: quantile(sorted(values), 0.99) };
}

export function median(values: readonly number[]): number {
  return quantile(sorted(values), 0.5);
}

/** Divides each value by the reference of the same round, because the speed of the machine differs from hour to hour. */
export function pairwiseRatios(values: readonly number[], references: readonly number[]): number[] {
  if (values.length !== references.length) throw new Error(`${values.length} values, ${references.length} references`);
  return values.map((value, index) => value / (references[index] ?? Number.NaN));
}

/** Returns the quantile `q` (0 to 1), interpolated linearly between the two nearest values (Hyndman and Fan 1996, definition 7). */
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

/** Counts latencies in steps of 1 µs; a latency above one second counts as one second. */
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

  /** Returns the percentile of the share `q` (0 to 1) in µs, by the nearest-rank method; NaN if there are no latencies. */
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
