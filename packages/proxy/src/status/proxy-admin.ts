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

/** The admin of a proxy that may be made later; undefined: it is off. */
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
