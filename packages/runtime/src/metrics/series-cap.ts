/**
 * Keeps a metric from growing without bound: the first `max` combinations of label values are admitted, others are not until some
 * are forgotten.
 */
export class SeriesCap {
  readonly #max: number;
  readonly #known = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  admits(labelValues: readonly string[]): boolean {
    const key = JSON.stringify(labelValues);
    if (this.#known.has(key)) return true;
    if (this.#known.size >= this.#max) return false;
    this.#known.add(key);
    return true;
  }

  forget(labelValues: readonly string[]): void {
    this.#known.delete(JSON.stringify(labelValues));
  }
}
