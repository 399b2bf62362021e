import {
  type AdminServer,
  type Clock,
  createAdminServer,
  type Health,
  type HostPort,
  type Logger,
} from '@weir/runtime';
import type { Supervisor } from '../node-proxy.ts';
import type { ProxyOptions } from '../proxy-settings.ts';
import { AdminPort } from './admin-port.ts';
import { createLazyMetrics } from './late-metrics.ts';

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
