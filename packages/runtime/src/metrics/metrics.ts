import { setImmediate as nextTurn } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Logger } from '../log.ts';
import type { MetricOptions, Metrics } from './contract.ts';
import { type CollectedHistogram, type CollectedMetric, renderCollected, renderHistogram } from './exposition.ts';
import { type SeriesCapOptions, withSeriesCap } from './series-cap.ts';

export interface MetricsOptions {
  /**
   * The maximum number of series per metric. Updates that would create more series are dropped, and counted in
   * `weir_metrics_dropped_total{metric,reason="cap"}`.
   */
  readonly maxSeries?: number;
  /** Whether to collect metrics of this process: memory, event loop, garbage collection. Default: off. */
  readonly processMetrics?: 'on' | 'off';
  /**
   * Returns the number of open descriptors, for `process_open_fds`. prom-client would list /proc/self/fd, which may
   * have tens of thousands of entries.
   */
  readonly openDescriptors?: () => number;
  /** Logs the failures of collected metrics whose source throws. */
  readonly log?: Logger;
}

/** How often the delay of the event loop is measured. The default, 10 ms, would be most of the work of an idle process. */
const EVENT_LOOP_SAMPLE_MS = 100;
/** How long a scrape may occupy the thread before the scrape yields to other work. */
const RENDER_QUANTUM_MS = 5;

/**
 * Creates a registry of metrics. There is no global registry, because tests and `weir standalone` need several
 * registries in one process.
 */
export function createMetrics(options: MetricsOptions = {}): Metrics {
  const { maxSeries = 20_000, processMetrics = 'off', openDescriptors, log } = options;
  const registry = new Registry();
  const dropped = createDroppedCounter(registry);
  const cap: SeriesCapOptions = { maxSeries, drop: (metric, reason) => dropped.inc({ metric, reason }) };
  const collected = new Map<string, CollectedMetric | CollectedHistogram>();
  let rendering: Promise<string> | undefined;
  if (processMetrics === 'on') {
    collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: EVENT_LOOP_SAMPLE_MS });
  }
  if (openDescriptors !== undefined) replaceOpenDescriptors(registry, openDescriptors);

  return {
    contentType: registry.contentType,
    counter(options) {
      const { update, remove } = withSeriesCap(new Counter(configFor(options)), options, cap);
      return { add: (labels, amount = 1) => update(labels, (metric) => metric.inc(labels, amount)), remove };
    },
    gauge(options) {
      const { update, remove } = withSeriesCap(new Gauge(configFor(options)), options, cap);
      return { set: (labels, value) => update(labels, (metric) => metric.set(labels, value)), remove };
    },
    histogram(options) {
      const config = { ...configFor(options), buckets: [...options.buckets] };
      const { update, remove } = withSeriesCap(new Histogram(config), options, cap);
      return { observe: (labels, value) => update(labels, (metric) => metric.observe(labels, value)), remove };
    },
    collectCounter(options) {
      add({ ...options, kind: 'counter' });
    },
    collectGauge(options) {
      add({ ...options, kind: 'gauge' });
    },
    collectHistogram(options) {
      add({ ...options, kind: 'histogram' });
    },
    render() {
      // Concurrent scrapes share one rendering, because several renderings at once would delay each other.
      rendering ??= renderAll().finally(() => {
        rendering = undefined;
      });
      return rendering;
    },
  };

  function add(metric: CollectedMetric | CollectedHistogram): void {
    claim(metric.name);
    collected.set(metric.name, metric);
  }

  function configFor({ name, help, labels = [] }: MetricOptions<string>): PromConfig {
    claim(name);
    return { name, help, labelNames: [...labels], registers: [registry] };
  }

  function claim(name: string): void {
    if (collected.has(name) || registry.getSingleMetric(name) !== undefined)
      throw new Error(`metric ${name} already exists`);
  }

  /**
   * Renders all metrics. The registry comes last, because it contains the counter of dropped updates, and this counter may increase while
   * collected metrics are rendered.
   */
  async function renderAll(): Promise<string> {
    const chunks: string[] = [];
    let yieldAt = performance.now() + RENDER_QUANTUM_MS;
    for (const metric of collected.values()) {
      const options = { cap, log };
      const rendered =
        metric.kind === 'histogram' ? renderHistogram(metric, options) : renderCollected(metric, options);
      for (const chunk of rendered) {
        chunks.push(chunk);
        if (performance.now() < yieldAt) continue;
        await nextTurn();
        yieldAt = performance.now() + RENDER_QUANTUM_MS;
      }
    }
    return chunks.join('') + (await registry.metrics());
  }
}

function replaceOpenDescriptors(registry: Registry, count: () => number): void {
  const name = 'process_open_fds';
  registry.removeSingleMetric(name);
  new Gauge({
    name,
    help: 'Number of open file descriptors.',
    registers: [registry],
    collect() {
      this.set(count());
    },
  });
}

function createDroppedCounter(registry: Registry): Counter<'metric' | 'reason'> {
  return new Counter({
    name: 'weir_metrics_dropped_total',
    help: 'Metric updates that were lost, by reason: the metric already had its maximum number of series (cap), or reading its source failed (error).',
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
