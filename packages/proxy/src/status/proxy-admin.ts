import {
  type AdminServer,
  type Clock,
  createAdminServer,
  type Health,
  type HostPort,
  type Logger,
  type Metrics,
} from '@weir/runtime';
import type { ProxyOptions } from '../supervisor/proxy-settings.ts';
import type { Supervisor } from '../supervisor/supervisor.ts';
import { AdminPort } from './admin-port.ts';
import type { ProxyMetricsSources } from './proxy-metrics.ts';

export interface ProxyAdminOptions extends Pick<ProxyOptions, 'admin' | 'adminTls' | 'adminToken'> {
  readonly health: Health;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Undefined if admin is off. `proxy` is called when admin starts, since the supervisor is created after its admin. */
export function createProxyAdmin(proxy: () => Supervisor, options: ProxyAdminOptions): AdminPort | undefined {
  const { admin: at, clock, log } = options;
  if (at === undefined || at === 'off') return undefined;
  return new AdminPort({
    at,
    server: () => createAdminServerFor(proxy(), at, options),
    isOtherProxyServing: () => proxy().isOtherProxyServing,
    clock,
    log: log.child({ part: 'admin' }),
  });
}

function createAdminServerFor(proxy: Supervisor, at: HostPort, options: ProxyAdminOptions): AdminServer {
  const { adminTls: tls, adminToken: token, health, log } = options;
  return createAdminServer({
    ...at,
    tls,
    token,
    health,
    metrics: createLazyMetrics(
      {
        slots: proxy.slots,
        table: proxy.table,
        propagation: proxy.propagation,
        health: proxy.health,
        pool: proxy.pool,
        delaySeconds: proxy.delaySeconds,
        log,
      },
      proxy.ready,
    ),
    routes: { '/debug/listeners': () => proxy.view() },
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
