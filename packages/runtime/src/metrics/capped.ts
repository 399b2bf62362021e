import type { Labels, MetricOptions } from './contract.ts';
import { SeriesCap } from './series-cap.ts';

/** What of prom-client's metrics is the same for all kinds. */
interface Underlying {
  remove(labels: Labels<string>): void;
}

export type DropReason = 'cap' | 'error';

export interface Capped<Metric extends Underlying> {
  /** Lets `apply` touch the metric, unless that would open one series too many. */
  update(labels: Labels<string>, apply: (metric: Metric) => void): void;
  remove(labels: Labels<string>): void;
}

export interface CapOptions {
  readonly maxSeries: number;
  drop(metric: string, reason: DropReason): void;
}

export function capped<Metric extends Underlying>(
  metric: Metric,
  { name, labels: names = [] }: MetricOptions<string>,
  { maxSeries, drop }: CapOptions,
): Capped<Metric> {
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
