import type { Heartbeat } from '@weir/model/data-plane';
import type { SlotBook } from './counters/slot-book.ts';
import type { UsageFlusher } from './flush/usage-flusher.ts';
import type { NodeTurns } from './handover/node-turns.ts';
import type { HealthRoom } from './health/health-room.ts';
import { unhealthyReportFor } from './health/unhealthy-report.ts';
import { localAddresses } from './heartbeat/local-addresses.ts';
import type { ListenerBook } from './listeners/listener-book.ts';
import type { ProxySettings } from './proxy-settings.ts';
import { type ProxySelfView, serviceCounts } from './proxy-view.ts';
import type { CutoffRoom } from './table/cutoff-room.ts';
import type { TableRoom } from './table/table-room.ts';
import type { WorkerPool } from './workers/worker-pool.ts';

export interface StatusOptions {
  readonly settings: ProxySettings;
  readonly startedAt: number;
  readonly slots: SlotBook;
  readonly tables: TableRoom;
  readonly cutoffs: CutoffRoom;
  readonly listeners: ListenerBook;
  readonly turns: NodeTurns;
  readonly flusher: UsageFlusher;
  readonly pool: WorkerPool;
  readonly health: HealthRoom;
  readonly isDraining: () => boolean;
  /** What is wrong with this host beside what is known since the start. */
  readonly advice: () => string | undefined;
}

/** What a proxy says of itself: to the store, to probes, to people. */
export class ProxyStatus {
  readonly #of: StatusOptions;

  constructor(options: StatusOptions) {
    this.#of = options;
  }

  /** Undefined: it may get traffic. */
  get notReady(): string | undefined {
    const { tables, turns, pool, isDraining } = this.#of;
    if (isDraining()) return 'draining';
    if (tables.applied === null) return 'no routing table yet';
    return turns.notServing ?? (pool.live === 0 ? 'no worker is up' : undefined);
  }

  /** Undefined: the store has not given this life its number yet. */
  get heartbeat(): Heartbeat | undefined {
    const { flusher, settings } = this.#of;
    const { life } = flusher;
    return life === undefined ? undefined : { ...this.#says(), life, sentAt: settings.clock.now() };
  }

  get view(): ProxySelfView {
    const { flusher, turns, slots, pool } = this.#of;
    return {
      ...this.#says(),
      life: flusher.life ?? null,
      conflict: turns.conflict ?? null,
      services: serviceCounts(slots),
      threads: pool.seats,
    };
  }

  #says(): Omit<Heartbeat, 'life'> {
    const { settings, startedAt, slots, tables, cutoffs, listeners, turns, pool, health, isDraining, advice } =
      this.#of;
    const { node, version = 'dev', addresses } = settings;
    const hostAdvice = withMore(settings.hostAdvice, advice());
    const unhealthy = unhealthyReportFor(health);
    return {
      node,
      version,
      startedAt,
      draining: isDraining() || turns.hasHandedOver,
      addresses: localAddresses(addresses ?? tables.nodeEntry?.bindAddresses ?? []),
      applied: tables.applied,
      cutoffSequence: cutoffs.applied,
      listeners: listeners.reports(),
      workers: pool.live,
      connections: slots.active(),
      ...(unhealthy === undefined ? {} : { unhealthy }),
      ...(hostAdvice === undefined ? {} : { hostAdvice }),
    };
  }
}

function withMore(known: readonly string[] | undefined, more: string | undefined): readonly string[] | undefined {
  return more === undefined ? known : [...(known ?? []), more];
}
