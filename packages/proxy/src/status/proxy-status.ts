import type { Heartbeat } from '@weir/model/data-plane';
import type { Clock, HostPort } from '@weir/runtime';
import type { SlotRegistry } from '../metering/slot-registry.ts';
import type { UsageFlusher } from '../metering/usage-flusher.ts';
import type { ListenerReconciler } from '../supervisor/listeners/listener-reconciler.ts';
import type { LocalSuspensions } from '../supervisor/local-suspensions.ts';
import type { ProxySettings } from '../supervisor/proxy-settings.ts';
import type { Suspensions } from '../supervisor/table/suspensions.ts';
import type { TableDistributor } from '../supervisor/table/table-distributor.ts';
import type { WorkerPool } from '../supervisor/worker-pool.ts';
import type { NodeTakeover } from '../takeover/node-takeover.ts';
import type { HealthMonitor } from '../upstream/health/health-monitor.ts';
import { localAddresses, unhealthyReportFor } from './heartbeat.ts';
import { type ProxySelfView, serviceCounts } from './proxy-view.ts';

export interface ProxyStatusOptions {
  readonly settings: ProxySettings;
  readonly startedAt: number;
  readonly slots: SlotRegistry;
  readonly table: TableDistributor;
  readonly suspensions: Suspensions;
  readonly localSuspensions: LocalSuspensions | undefined;
  readonly listeners: ListenerReconciler;
  readonly takeover: NodeTakeover;
  readonly flusher: UsageFlusher;
  readonly pool: WorkerPool;
  readonly health: HealthMonitor;
  readonly isDraining: () => boolean;
  /** Returns the warnings that are reported together with `settings.hostWarnings`. */
  readonly warnings: () => readonly (string | undefined)[];
  /** Returns the address of the admin server; undefined while it does not listen. */
  readonly adminAddress: () => HostPort | undefined;
}

/** Describes the state of this proxy for the store, for probes and for the debug page. */
export class ProxyStatus {
  readonly #options: ProxyStatusOptions;

  constructor(options: ProxyStatusOptions) {
    this.#options = options;
  }

  /** Why this proxy should get no traffic; undefined if it is ready. */
  get notReady(): string | undefined {
    const { table, takeover, pool, isDraining } = this.#options;
    if (isDraining()) return 'draining';
    if (table.applied === null) return 'no routing table yet';
    return takeover.notServingReason ?? (pool.live === 0 ? 'no worker is up' : undefined);
  }

  /** The heartbeat to send now; undefined while this incarnation has no number. */
  get heartbeat(): Heartbeat | undefined {
    const { flusher, settings } = this.#options;
    const { incarnation } = flusher;
    if (incarnation === undefined) return undefined;
    const { reportedAt } = flusher;
    return {
      ...this.#snapshot(),
      life: incarnation,
      sentAt: settings.clock.now(),
      ...(reportedAt !== undefined && { usageReportedAt: reportedAt }),
    };
  }

  get view(): ProxySelfView {
    const { flusher, takeover, slots, pool } = this.#options;
    return {
      ...this.#snapshot(),
      life: flusher.incarnation ?? null,
      conflict: takeover.conflict ?? null,
      services: serviceCounts(slots),
      threads: pool.slotViews,
    };
  }

  #snapshot(): Omit<Heartbeat, 'life'> {
    const {
      settings,
      startedAt,
      slots,
      table,
      suspensions,
      localSuspensions,
      listeners,
      takeover,
      pool,
      health,
      isDraining,
      warnings,
      adminAddress,
    } = this.#options;
    const { node, version, transport, addresses } = settings;
    const hostAdvice = append(settings.hostWarnings, warnings());
    const unhealthy = unhealthyReportFor(health);
    const admin = adminAddress();
    const local = localSuspensions?.inForce ?? [];
    return {
      node,
      version,
      transport,
      startedAt,
      draining: isDraining() || takeover.hasHandedOver,
      addresses: localAddresses(addresses ?? table.nodeEntry?.bindAddresses ?? []),
      applied: table.applied,
      cutoffSequence: suspensions.applied,
      listeners: listeners.reports(),
      workers: pool.live,
      connections: slots.activeConnections(),
      ...(unhealthy === undefined ? {} : { unhealthy }),
      ...(hostAdvice === undefined ? {} : { hostAdvice }),
      ...(local.length === 0 ? {} : { localSuspensions: local }),
      ...(admin === undefined ? {} : { admin: { ...admin, tls: settings.adminTls !== undefined } }),
    };
  }
}

function append(
  known: readonly string[] | undefined,
  more: readonly (string | undefined)[],
): readonly string[] | undefined {
  const found = more.filter((each) => each !== undefined);
  return found.length === 0 ? known : [...(known ?? []), ...found];
}

/**
 * How long the proxy may be without a worker before it asks for a restart. The time is long, because the pool replaces
 * workers, and a restart would lose counts that are not reported yet.
 */
const MAX_TIME_WITHOUT_WORKERS_MS = 60_000;

export interface WorkerLiveness {
  /** Checks whether a worker is up. To be called once a second. */
  check(): void;
  /** Why the proxy must be restarted; undefined if a worker was up recently. */
  readonly problem: string | undefined;
}

/**
 * Creates a check that reports a problem if no worker has been up for too long. This check need not detect a main
 * thread that hangs, because such a main thread answers no probe.
 */
export function createWorkerLiveness(workers: () => number, clock: Pick<Clock, 'monotonic'>): WorkerLiveness {
  let lastUpAt = clock.monotonic();
  let now = lastUpAt;
  return {
    check() {
      now = clock.monotonic();
      if (workers() > 0) lastUpAt = now;
    },
    get problem() {
      const downS = Math.floor((now - lastUpAt) / 1_000);
      return downS * 1_000 < MAX_TIME_WITHOUT_WORKERS_MS ? undefined : `no worker has been up for ${downS} s`;
    },
  };
}
