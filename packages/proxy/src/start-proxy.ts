import { join } from 'node:path';
import { createAdminServer, createHealth, errorMessage, type HostPort, systemClock } from '@weir/runtime';
import { lateMetrics } from './admin/late-metrics.ts';
import { type LocalAdmin, openLocalAdmin } from './admin/local-admin.ts';
import { NodeProxy } from './node-proxy.ts';
import type { ProxyOptions } from './proxy-settings.ts';
import type { ProxySelfView } from './proxy-view.ts';
import { openStateDirectory, type ProxyDisk } from './state-directory.ts';

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
  const running: RunningProxy = {
    ready: proxy.ready,
    failed: proxy.failed,
    view: () => proxy.view(),
    adminAddress: admin?.address(),
    async close({ drainMs: wanted = drainMs } = {}) {
      await proxy.close(wanted);
      await local?.close();
      await admin?.close();
    },
  };
  const local = disk && (await localAdminFor(proxy, { options: { ...options, log }, disk, running }));
  await proxy.start();
  return running;
}

/** Without a state directory there is no place of this proxy's own for a socket. */
async function localAdminFor(
  proxy: NodeProxy,
  { options, disk, running }: { options: ProxyOptions; disk: ProxyDisk; running: RunningProxy },
): Promise<LocalAdmin | undefined> {
  const { workers, log, onDrain } = options;
  const path = join(disk.directory, 'admin.sock');
  try {
    return await openLocalAdmin({
      path,
      workers,
      log: log.child({ part: 'local-admin' }),
      profile: (worker, durationMs) => proxy.pool.profile(worker, durationMs),
      drain: onDrain ?? (() => void running.close()),
    });
  } catch (error) {
    log.warn({ path, reason: errorMessage(error) }, 'profiles and drains cannot be asked for: no local admin socket');
    return undefined;
  }
}

function adminFor(proxy: NodeProxy, { admin, log }: ProxyOptions): ReturnType<typeof createAdminServer> | undefined {
  if (admin === undefined || admin === 'off') return undefined;
  const health = createHealth();
  health.add('proxy', 'ready', () => proxy.notReady);
  return createAdminServer({
    ...admin,
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
