import { join } from 'node:path';
import {
  errorMessage,
  Health,
  type HostPort,
  type Logger,
  systemClock,
  type UnixSocket,
  UsageError,
} from '@weir/runtime';
import { openLocalAdmin } from '../status/local-admin.ts';
import type { ProxySelfView } from '../status/proxy-view.ts';
import {
  checkTls,
  checkTransport,
  DEFAULT_TLS,
  DEFAULT_TRANSPORT,
  type TlsKind,
  type TransportKind,
} from '../transport/choose-transport.ts';
import type { ProxyOptions } from './proxy-settings.ts';
import { openStateDirectory, type StateDirectory } from './state-directory.ts';
import { Supervisor } from './supervisor.ts';

const DEFAULT_DRAIN_MS = 30_000;
/** How long a local suspension waits for the workers. A worker that takes longer is assumed to hang. */
const APPLY_TIMEOUT_MS = 3_000;

export interface RunningProxy {
  /** Resolves when the first table is applied and each of its listeners is open, allocated or reported as failed. */
  readonly ready: Promise<void>;
  /** Rejects when the proxy cannot continue because of a bug. */
  readonly failed: Promise<never>;
  view(): ProxySelfView;
  /** The address of the admin server; undefined while it does not listen. */
  readonly adminAddress: HostPort | undefined;
  /**
   * Stops accepting connections, waits up to `drainMs` for open connections to end, resets the remaining connections,
   * and sends the last usage to the store. A second call with `drainMs: 0` ends the wait.
   */
  close(options?: { readonly drainMs?: number }): Promise<void>;
}

/** Starts the proxy of one node in this process. Resolves when the proxy runs, even if the store is unreachable. */
export async function startProxy(options: ProxyOptions): Promise<RunningProxy> {
  const {
    node,
    store,
    stateDirectory,
    clock = systemClock,
    drainMs = DEFAULT_DRAIN_MS,
    health = new Health(),
    transport = DEFAULT_TRANSPORT,
    version = 'dev',
  } = options;
  const log = options.log.child({ node });
  await requireTransport(transport);
  const tls = transport === 'node' ? 'node' : await usableTls(options.tls ?? DEFAULT_TLS, log);
  const state =
    stateDirectory === undefined
      ? undefined
      : await openStateDirectory({ path: stateDirectory, node, store, clock, log: log.child({ part: 'state' }) });
  const proxy = new Supervisor({ ...options, health, clock, transport, tls, version, log }, state);
  const { admin } = proxy.components;
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
    async close({ drainMs: timeoutMs = drainMs } = {}) {
      await proxy.close(timeoutMs);
      await localAdmin?.close();
      await admin?.close();
    },
  };
  const localAdmin = state && (await openLocalAdminFor(proxy, { options: { ...options, log }, state, running }));
  proxy.ready.then(
    () =>
      log.info(
        { version, transport, tls, afterMs: Math.round(performance.now()) },
        'the first routing table is in effect',
      ),
    () => undefined, // The proxy was closed before it was ready.
  );
  await proxy.start();
  return running;
}

async function requireTransport(kind: TransportKind): Promise<void> {
  try {
    await checkTransport(kind);
  } catch (cause) {
    throw new UsageError(
      `the self-test of the system calls failed: ${errorMessage(cause)}; use Node.js 26.10 or later, or set WEIR_TRANSPORT=node`,
      { cause },
    );
  }
}

/** Returns `wanted`, or `node` if this version of Node.js does not support it. Clients see no difference. */
async function usableTls(wanted: TlsKind, log: Logger): Promise<TlsKind> {
  if (wanted === 'node') return wanted;
  try {
    await checkTls();
    return wanted;
  } catch (error) {
    log.warn(
      { reason: errorMessage(error), advice: 'set WEIR_TLS=node, or use Node.js 26.10' },
      "the self-test of OpenSSL's functions failed; terminating TLS with Node's TLSSocket, which costs more CPU",
    );
    return 'node';
  }
}

/** Opens the local admin socket in the state directory, because no other directory belongs to this proxy alone. */
async function openLocalAdminFor(
  proxy: Supervisor,
  { options, state, running }: { options: ProxyOptions; state: StateDirectory; running: RunningProxy },
): Promise<UnixSocket | undefined> {
  const { node, workers, log, onDrain, clock = systemClock } = options;
  const { pool, table, localSuspensions } = proxy.components;
  if (localSuspensions === undefined) return undefined;
  const path = join(state.directory, 'admin.sock');
  try {
    return await openLocalAdmin({
      path,
      workers,
      log: log.child({ part: 'local-admin' }),
      profile: (worker, durationMs) => pool.profile(worker, durationMs),
      drain: onDrain ?? (() => void running.close()),
      suspensions: {
        node,
        suspensions: localSuspensions,
        table: () => table.placed?.table,
        untilApplied: () => pool.untilReached(pool.mark(), APPLY_TIMEOUT_MS),
        now: () => clock.now(),
      },
    });
  } catch (error) {
    log.warn(
      { path, reason: errorMessage(error) },
      'failed to open the local admin socket; profiles, drains and local suspensions cannot be requested',
    );
    return undefined;
  }
}
