import type { Metrics } from '@weir/runtime';
import type { ProxyMetricsSources } from './proxy-metrics.ts';

/**
 * The library that keeps metrics is a sixth of all modules of the main thread, and nobody is served sooner for it: it is loaded when the
 * first table is served, or when somebody asks before.
 */
export function createLazyMetrics(parts: ProxyMetricsSources, served: Promise<void>): () => Promise<Metrics> {
  let loading: Promise<Metrics> | undefined;
  const metrics = (): Promise<Metrics> => {
    loading ??= loadMetrics(parts);
    return loading;
  };
  // Closed before; or it cannot be loaded, which whoever asks is told.
  served.then(metrics).catch(() => undefined);
  return metrics;
}

async function loadMetrics(parts: ProxyMetricsSources): Promise<Metrics> {
  const { createProxyMetrics } = await import('./proxy-metrics.ts');
  return createProxyMetrics(parts);
}
