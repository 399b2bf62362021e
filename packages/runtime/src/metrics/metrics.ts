import { setImmediate as nextTurn } from 'node:timers/promises';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Logger } from '../log.ts';
import type { MetricOptions, Metrics } from './contract.ts';
import { type CollectedMetric, renderCollected } from './exposition.ts';
import { type SeriesCapOptions, withSeriesCap } from './series-cap.ts';

export interface MetricsOptions {
  /** Series per metric; what exceeds it is dropped, and `weir_metrics_dropped_total{metric,reason="cap"}` says so. */
  readonly maxSeries?: number;
  /** Memory, event loop, garbage collection of this process; they cost a little, so they are asked for. */
  readonly processMetrics?: 'on' | 'off';
  /** How many descriptors are open, for `process_open_fds`: otherwise a list of all is read at each scrape, which may be tens of thousands. */
  readonly openDescriptors?: () => number;
  /** Told when the source of a collected metric throws. */
  readonly log?: Logger;
}

/** So long a scrape keeps the thread to itself at a time: whoever is asked may have thousands of series, and work to do. */
const RENDER_QUANTUM_MS = 5;

/** A registry of its own for each process, and for each of several that run in one. */
export function createMetrics(options: MetricsOptions = {}): Metrics {
  const { maxSeries = 20_000, processMetrics = 'off', openDescriptors, log } = options;
  const registry = new Registry();
  const dropped = createDroppedCounter(registry);
  const cap: SeriesCapOptions = { maxSeries, drop: (metric, reason) => dropped.inc({ metric, reason }) };
  const collected = new Map<string, CollectedMetric>();
  let rendering: Promise<string> | undefined;
  if (processMetrics === 'on') collectDefaultMetrics({ register: registry });
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
    render() {
      // Whoever asks while it is made gets the same: several at once would make each of them late.
      rendering ??= renderAll().finally(() => {
        rendering = undefined;
      });
      return rendering;
    },
  };

  function add(metric: CollectedMetric): void {
    claim(metric.name);
    collected.set(metric.name, metric);
  }

  function configFor({ name, help, labels = [] }: MetricOptions<string>): PromConfig {
    claim(name);
    return { name, help, labelNames: [...labels], registers: [registry] };
  }

  function claim(name: string): void {
    if (collected.has(name) || registry.getSingleMetric(name) !== undefined)
      throw new Error(`there is a metric ${name} already`);
  }

  /** The registry last, so that what is dropped now is told in the same scrape. */
  async function renderAll(): Promise<string> {
    const pieces: string[] = [];
    let turnEndsAt = performance.now() + RENDER_QUANTUM_MS;
    for (const metric of collected.values()) {
      for (const piece of renderCollected(metric, { cap, log })) {
        pieces.push(piece);
        if (performance.now() < turnEndsAt) continue;
        await nextTurn();
        turnEndsAt = performance.now() + RENDER_QUANTUM_MS;
      }
    }
    return pieces.join('') + (await registry.metrics());
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
