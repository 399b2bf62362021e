import { type AdminServer, createAdminServer, type HostPort, type Metrics } from '@weir/runtime';
import type { LogHub } from '../access-log/log-hub.ts';
import type { ClientReports } from '../supervisor/client-reports.ts';
import type { ProxySettings } from '../supervisor/proxy-settings.ts';
import { accessLogStream } from './access-log-stream.ts';
import { AdminPort } from './admin-port.ts';
import type { ProxyMetricsSources } from './proxy-metrics.ts';
import type { ProxySelfView } from './proxy-view.ts';
import { topClientsStream } from './top-clients-stream.ts';

export interface ProxyAdminSources {
  readonly metricsSources: ProxyMetricsSources;
  /** Resolves when the first table is in effect. Rejects if the proxy closes first. */
  readonly ready: Promise<void>;
  readonly view: () => ProxySelfView;
  readonly isOtherProxyServing: () => boolean;
  readonly accessLogs: LogHub;
  /** Undefined if clients are not counted. */
  readonly clientReports: ClientReports | undefined;
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
  const { metricsSources, ready, view, accessLogs, clientReports } = sources;
  return createAdminServer({
    ...address,
    tls,
    token,
    health,
    metrics: createLazyMetrics(metricsSources, ready),
    routes: { '/debug/listeners': () => view() },
    streams: { '/access-log': accessLogStream(accessLogs), '/top-clients': topClientsStream(clientReports) },
    log: log.child({ part: 'admin' }),
    advice: 'set WEIR_ADMIN to a free HOST:PORT, or to off',
  });
}

/**
 * Loads the metrics library only when the first table is in effect (`served`) or the metrics are requested, because the
 * library makes up a sixth of the main thread's modules.
 */
export function createLazyMetrics(sources: ProxyMetricsSources, served: Promise<void>): () => Promise<Metrics> {
  let loading: Promise<Metrics> | undefined;
  const metrics = (): Promise<Metrics> => {
    loading ??= loadMetrics(sources);
    return loading;
  };
  // Ignores both errors: `served` rejects if the proxy closes early, and the next request reports a failure to load the
  // library.
  served.then(metrics).catch(() => undefined);
  return metrics;
}

async function loadMetrics(sources: ProxyMetricsSources): Promise<Metrics> {
  const { createProxyMetrics } = await import('./proxy-metrics.ts');
  return createProxyMetrics(sources);
}
