import type { Labels, MetricOptions } from './contract.ts';

/**
 * Limits the number of series of a metric. Admits new label values while fewer than `max` combinations of values are
 * known.
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

/** The method `remove`, which all kinds of prom-client metrics have. */
interface RemovableMetric {
  remove(labels: Labels<string>): void;
}

export type DropReason = 'cap' | 'error';

export interface CappedMetric<Metric extends RemovableMetric> {
  /** Calls `apply`. If the update would create more than `maxSeries` series, drops the update instead. */
  update(labels: Labels<string>, apply: (metric: Metric) => void): void;
  remove(labels: Labels<string>): void;
}

export interface SeriesCapOptions {
  readonly maxSeries: number;
  drop(metric: string, reason: DropReason): void;
}

export function withSeriesCap<Metric extends RemovableMetric>(
  metric: Metric,
  { name, labels: names = [] }: MetricOptions<string>,
  { maxSeries, drop }: SeriesCapOptions,
): CappedMetric<Metric> {
  const cap = new SeriesCap(maxSeries);
  const valuesOf = (labels: Labels<string>): string[] => names.map((label) => labels[label] ?? '');
  return {
    update(labels, apply) {
      if (cap.admits(valuesOf(labels))) apply(metric);
      else drop(name, 'cap');
    },
    remove(labels) {
      metric.remove(labels);
      cap.forget(valuesOf(labels));
    },
  };
}
