import { type AdminServer, createAdminServer, type HostPort, type Metrics } from '@weir/runtime';
import type { ProxySettings } from '../supervisor/proxy-settings.ts';
import { AdminPort } from './admin-port.ts';
import type { ProxyMetricsSources } from './proxy-metrics.ts';
import type { ProxySelfView } from './proxy-view.ts';

export interface ProxyAdminSources {
  readonly metricsSources: ProxyMetricsSources;
  /** Settles when the first table is served, or the proxy closes before that. */
  readonly ready: Promise<void>;
  readonly view: () => ProxySelfView;
  readonly isOtherProxyServing: () => boolean;
}

/** Creates the admin port, or returns undefined if the admin server is off. */
export function createProxyAdmin(settings: ProxySettings, sources: ProxyAdminSources): AdminPort | undefined {
  const { admin: address, clock, log } = settings;
  if (address === undefined || address === 'off') return undefined;
  return new AdminPort({
    at: address,
    server: () => createAdminServerFor(address, settings, sources),
    isOtherProxyServing: sources.isOtherProxyServing,
    clock,
    log: log.child({ part: 'admin' }),
  });
}

function createAdminServerFor(address: HostPort, settings: ProxySettings, sources: ProxyAdminSources): AdminServer {
  const { adminTls: tls, adminToken: token, health, log } = settings;
  const { metricsSources, ready, view } = sources;
  return createAdminServer({
    ...address,
    tls,
    token,
    health,
    metrics: createLazyMetrics(metricsSources, ready),
    routes: { '/debug/listeners': () => view() },
    log: log.child({ part: 'admin' }),
    advice: 'set WEIR_ADMIN to a free HOST:PORT, or to off',
  });
}

/** Loads the metrics library, a sixth of the main thread's modules, after the first table is served or on request. */
export function createLazyMetrics(sources: ProxyMetricsSources, served: Promise<void>): () => Promise<Metrics> {
  let loading: Promise<Metrics> | undefined;
  const metrics = (): Promise<Metrics> => {
    loading ??= loadMetrics(sources);
    return loading;
  };
  // Rejects if the proxy closes before it serves, or if loading fails, which the next request reports.
  served.then(metrics).catch(() => undefined);
  return metrics;
}

async function loadMetrics(sources: ProxyMetricsSources): Promise<Metrics> {
  const { createProxyMetrics } = await import('./proxy-metrics.ts');
  return createProxyMetrics(sources);
}
