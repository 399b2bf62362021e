import {
  type AdminServer,
  type Clock,
  createAdminServer,
  type Health,
  type HostPort,
  type Logger,
} from '@weir/runtime';
import type { NodeProxy } from '../node-proxy.ts';
import type { ProxyOptions } from '../proxy-settings.ts';
import { AdminPort } from './admin-port.ts';
import { lateMetrics } from './late-metrics.ts';

export interface AdminForOptions extends Pick<ProxyOptions, 'admin' | 'adminTls' | 'adminToken'> {
  readonly health: Health;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The admin of a proxy that may be made later; undefined: it is off. */
export function adminFor(proxy: () => NodeProxy, options: AdminForOptions): AdminPort | undefined {
  const { admin: at, clock, log } = options;
  if (at === undefined || at === 'off') return undefined;
  return new AdminPort({
    at,
    server: () => serverFor(proxy(), at, options),
    isOthers: () => proxy().isOthers,
    clock,
    log: log.child({ part: 'admin' }),
  });
}

function serverFor(proxy: NodeProxy, at: HostPort, options: AdminForOptions): AdminServer {
  const { adminTls: tls, adminToken: token, health, log } = options;
  return createAdminServer({
    ...at,
    tls,
    token,
    health,
    metrics: lateMetrics(
      {
        slots: proxy.slots,
        tables: proxy.tables,
        propagation: proxy.propagation,
        health: proxy.health,
        pool: proxy.pool,
        delays: proxy.delays,
        log,
      },
      proxy.ready,
    ),
    routes: { '/debug/listeners': () => proxy.view() },
    log: log.child({ part: 'admin' }),
    advice: 'set WEIR_ADMIN to a free HOST:PORT, or to off',
  });
}
