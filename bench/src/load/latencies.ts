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
