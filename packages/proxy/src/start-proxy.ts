import { createAdminServer, createHealth, type HostPort, systemClock } from '@weir/runtime';
import { createProxyMetrics } from './admin/proxy-metrics.ts';
import { NodeProxy } from './node-proxy.ts';
import type { ProxyOptions } from './proxy-settings.ts';
import type { ProxySelfView } from './proxy-view.ts';
import { openStateDirectory } from './state-directory.ts';

const DRAIN_MS = 30_000;

export interface RunningProxy {
  /** The first table is applied, and each of its listeners is open, held or reported as failed. */
  readonly ready: Promise<void>;
  /** Rejects when it cannot go on: a bug. */
  readonly failed: Promise<never>;
  view(): ProxySelfView;
  /** Where admin listens; undefined: nowhere. */
  readonly adminAddress: HostPort | undefined;
  /**
   * Takes no new connections, lets those that are open end for at most `drainMs`, resets the others, brings the last counts to
   * the ledger. Again with 0: waits no longer.
   */
  close(options?: { readonly drainMs?: number }): Promise<void>;
}

/** A proxy of one node in this process. Resolves when it runs, also while the store is away. */
export async function startProxy(options: ProxyOptions): Promise<RunningProxy> {
  const { node, store, stateDirectory, clock = systemClock, drainMs = DRAIN_MS } = options;
  const log = options.log.child({ node });
  const disk =
    stateDirectory === undefined
      ? undefined
      : await openStateDirectory({ path: stateDirectory, node, store, clock, log: log.child({ part: 'state' }) });
  const proxy = new NodeProxy({ ...options, clock, log }, disk);
  const admin = adminFor(proxy, { ...options, log });
  await admin?.start(new AbortController().signal);
  await proxy.start();
  return {
    ready: proxy.ready,
    failed: proxy.failed,
    view: () => proxy.view(),
    adminAddress: admin?.address(),
    async close({ drainMs: wanted = drainMs } = {}) {
      await proxy.close(wanted);
      await admin?.close();
    },
  };
}

function adminFor(proxy: NodeProxy, { admin, log }: ProxyOptions): ReturnType<typeof createAdminServer> | undefined {
  if (admin === undefined || admin === 'off') return undefined;
  const health = createHealth();
  health.add('proxy', 'ready', () => proxy.notReady);
  return createAdminServer({
    ...admin,
    health,
    metrics: createProxyMetrics({ slots: proxy.slots, tables: proxy.tables, log }),
    routes: { '/debug/listeners': () => proxy.view() },
    log: log.child({ part: 'admin' }),
    advice: 'set WEIR_ADMIN to a free HOST:PORT, or to off',
  });
}
