import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Logger } from '../log.ts';
import { type CapOptions, type Capped, capped } from './capped.ts';
import type { CollectedOptions, MetricOptions, Metrics, Sample } from './contract.ts';

export interface MetricsOptions {
  /** Series per metric; what exceeds it is dropped, and `weir_metrics_dropped_total{metric,reason="cap"}` says so. */
  readonly maxSeries?: number;
  /** Memory, event loop, garbage collection of this process; they cost a little, so they are asked for. */
  readonly processMetrics?: 'on' | 'off';
  /** Told when the source of a collected metric throws. */
  readonly log?: Logger;
}

/** A registry of its own for each process, and for each of several that run in one. */
export function createMetrics({ maxSeries = 20_000, processMetrics = 'off', log }: MetricsOptions = {}): Metrics {
  const registry = new Registry();
  const dropped = droppedIn(registry);
  const cap: CapOptions = { maxSeries, drop: (metric, reason) => dropped.inc({ metric, reason }) };
  const collectors: (() => void)[] = [];
  if (processMetrics === 'on') collectDefaultMetrics({ register: registry });

  return {
    contentType: registry.contentType,
    counter(options) {
      const { update, remove } = capped(new Counter(configFor(options, registry)), options, cap);
      return { add: (labels, amount = 1) => update(labels, (metric) => metric.inc(labels, amount)), remove };
    },
    gauge(options) {
      const { update, remove } = capped(new Gauge(configFor(options, registry)), options, cap);
      return { set: (labels, value) => update(labels, (metric) => metric.set(labels, value)), remove };
    },
    histogram(options) {
      const config = { ...configFor(options, registry), buckets: [...options.buckets] };
      const { update, remove } = capped(new Histogram(config), options, cap);
      return { observe: (labels, value) => update(labels, (metric) => metric.observe(labels, value)), remove };
    },
    collectCounter(options) {
      const series = capped(new Counter(configFor(options, registry)), options, cap);
      const take = (sample: Sample<string>): void =>
        series.update(sample.labels, (m) => m.inc(sample.labels, sample.value));
      collectors.push(collector(series, options, { cap, log, take }));
    },
    collectGauge(options) {
      const series = capped(new Gauge(configFor(options, registry)), options, cap);
      const take = (sample: Sample<string>): void =>
        series.update(sample.labels, (m) => m.set(sample.labels, sample.value));
      collectors.push(collector(series, options, { cap, log, take }));
    },
    render() {
      // Before the registry reads anything, so that what is dropped now is told in the same scrape.
      for (const collect of collectors) collect();
      return registry.metrics();
    },
  };
}

function droppedIn(registry: Registry): Counter<'metric' | 'reason'> {
  return new Counter({
    name: 'weir_metrics_dropped_total',
    help: 'Updates of metrics lost because the metric had its full number of series (cap) or its source failed (error).',
    labelNames: ['metric', 'reason'],
    registers: [registry],
  });
}

interface PromConfig {
  name: string;
  help: string;
  labelNames: string[];
  registers: Registry[];
}

function configFor({ name, help, labels = [] }: MetricOptions<string>, registry: Registry): PromConfig {
  return { name, help, labelNames: [...labels], registers: [registry] };
}

interface CollectorOptions {
  readonly cap: CapOptions;
  readonly log: Logger | undefined;
  take(sample: Sample<string>): void;
}

/** Every scrape starts anew: only what is there now is shown. One broken source does not cost the others their scrape. */
function collector(
  series: Capped<Counter | Gauge>,
  options: CollectedOptions<string>,
  { cap, log, take }: CollectorOptions,
): () => void {
  return () => {
    series.reset();
    try {
      for (const sample of options.collect()) take(sample);
    } catch (error) {
      series.reset(); // Half of the series would look as if the others had gone.
      cap.drop(options.name, 'error');
      log?.warn({ metric: options.name, err: error }, 'metric could not be collected');
    }
  };
}
