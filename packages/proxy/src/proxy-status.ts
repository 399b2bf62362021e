import type { Heartbeat } from '@weir/model/data-plane';
import type { SlotRegistry } from './counters/slot-book.ts';
import type { UsageFlusher } from './flush/usage-flusher.ts';
import type { NodeTakeover } from './handover/node-turns.ts';
import type { HealthMonitor } from './health/health-room.ts';
import { unhealthyReportFor } from './health/unhealthy-report.ts';
import { localAddresses } from './heartbeat/local-addresses.ts';
import type { ListenerReconciler } from './listeners/listener-book.ts';
import type { ProxySettings } from './proxy-settings.ts';
import { type ProxySelfView, serviceCounts } from './proxy-view.ts';
import type { Suspensions } from './table/cutoff-room.ts';
import type { TableDistributor } from './table/table-room.ts';
import type { WorkerPool } from './workers/worker-pool.ts';

export interface ProxyStatusOptions {
  readonly settings: ProxySettings;
  readonly startedAt: number;
  readonly slots: SlotRegistry;
  readonly table: TableDistributor;
  readonly suspensions: Suspensions;
  readonly listeners: ListenerReconciler;
  readonly takeover: NodeTakeover;
  readonly flusher: UsageFlusher;
  readonly pool: WorkerPool;
  readonly health: HealthMonitor;
  readonly isDraining: () => boolean;
  /** What is wrong with this host beside what is known since the start. */
  readonly adminWarning: () => string | undefined;
}

/** What a proxy says of itself: to the store, to probes, to people. */
export class ProxyStatus {
  readonly #options: ProxyStatusOptions;

  constructor(options: ProxyStatusOptions) {
    this.#options = options;
  }

  /** Undefined: it may get traffic. */
  get notReady(): string | undefined {
    const { table, takeover, pool, isDraining } = this.#options;
    if (isDraining()) return 'draining';
    if (table.applied === null) return 'no routing table yet';
    return takeover.notServingReason ?? (pool.live === 0 ? 'no worker is up' : undefined);
  }

  /** Undefined: the store has not given this life its number yet. */
  get heartbeat(): Heartbeat | undefined {
    const { flusher, settings } = this.#options;
    const { incarnation } = flusher;
    return incarnation === undefined
      ? undefined
      : { ...this.#snapshot(), life: incarnation, sentAt: settings.clock.now() };
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
      listeners,
      takeover,
      pool,
      health,
      isDraining,
      adminWarning,
    } = this.#options;
    const { node, version = 'dev', addresses } = settings;
    const hostAdvice = append(settings.hostWarnings, adminWarning());
    const unhealthy = unhealthyReportFor(health);
    return {
      node,
      version,
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
    };
  }
}

function append(known: readonly string[] | undefined, more: string | undefined): readonly string[] | undefined {
  return more === undefined ? known : [...(known ?? []), more];
}
