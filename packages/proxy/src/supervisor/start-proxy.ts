import { join } from 'node:path';
import { createHealth, errorMessage, type HostPort, systemClock, type UnixSocket } from '@weir/runtime';
import { openLocalAdmin } from '../status/local-admin.ts';
import { createProxyAdmin } from '../status/proxy-admin.ts';
import type { ProxySelfView } from '../status/proxy-view.ts';
import type { ProxyOptions } from './proxy-settings.ts';
import { openStateDirectory, type StateDirectory } from './state-directory.ts';
import { Supervisor } from './supervisor.ts';

const DEFAULT_DRAIN_MS = 30_000;

export interface RunningProxy {
  /** The first table is applied, and each of its listeners is open, held or reported as failed. */
  readonly ready: Promise<void>;
  /** Rejects when it cannot go on: a bug. */
  readonly failed: Promise<never>;
  view(): ProxySelfView;
  /** Where admin listens; undefined: nowhere, or not now. */
  readonly adminAddress: HostPort | undefined;
  /**
   * Takes no new connections, lets those that are open end for at most `drainMs`, resets the others, brings the last counts to
   * the ledger. Again with 0: waits no longer.
   */
  close(options?: { readonly drainMs?: number }): Promise<void>;
}

/** A proxy of one node in this process. Resolves when it runs, also while the store is away. */
export async function startProxy(options: ProxyOptions): Promise<RunningProxy> {
  const {
    node,
    store,
    stateDirectory,
    clock = systemClock,
    drainMs = DEFAULT_DRAIN_MS,
    health = createHealth(),
  } = options;
  const log = options.log.child({ node });
  const state =
    stateDirectory === undefined
      ? undefined
      : await openStateDirectory({ path: stateDirectory, node, store, clock, log: log.child({ part: 'state' }) });
  const admin = createProxyAdmin(() => proxy, { ...options, health, clock, log });
  const proxy = new Supervisor({ ...options, clock, log }, { state, admin });
  health.add('proxy', 'ready', () => proxy.notReady);
  health.add('workers', 'live', () => proxy.notLive);
  await admin?.start();
  const running: RunningProxy = {
    ready: proxy.ready,
    failed: proxy.failed,
    view: () => proxy.view(),
    get adminAddress() {
      return admin?.address;
    },
    async close({ drainMs: wanted = drainMs } = {}) {
      await proxy.close(wanted);
      await local?.close();
      await admin?.close();
    },
  };
  const local = state && (await openLocalAdminFor(proxy, { options: { ...options, log }, disk: state, running }));
  await proxy.start();
  return running;
}

/** Without a state directory there is no place of this proxy's own for a socket. */
async function openLocalAdminFor(
  proxy: Supervisor,
  { options, disk, running }: { options: ProxyOptions; disk: StateDirectory; running: RunningProxy },
): Promise<UnixSocket | undefined> {
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
