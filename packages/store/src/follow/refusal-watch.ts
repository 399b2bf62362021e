import {
  type LimitRefusals,
  limitRefusalsIn,
  minuteOf,
  periodsOf,
  QUIET_MINUTES,
  refusalsToShow,
} from '@weir/model/data-plane';
import type { LeaseStore, UsageStore } from '../contract.ts';

/** How long after the end of a minute the usage of the minute is read. Proxies report their usage once a second. */
const SETTLE_MS = 5_000;
/**
 * How many minutes after the ledger was restored are not read. Proxies then report all refusals of their incarnations again, because the
 * archive lacks refusals.
 */
const RESTORE_MINUTES = 2;

export interface RefusalWatchOptions {
  readonly usage: Pick<UsageStore, 'rows' | 'restoredAt'>;
  readonly leases: Pick<LeaseStore, 'openConnections'>;
}

/** Follows which Services refuse clients because of a limit. Reads each complete minute of the ledger once. */
export class RefusalWatch {
  readonly #options: RefusalWatchOptions;
  #readUntil = Number.NEGATIVE_INFINITY;
  #recent: readonly LimitRefusals[] = [];
  #shown: ReadonlyMap<string, LimitRefusals> = new Map();

  constructor(options: RefusalWatchOptions) {
    this.#options = options;
  }

  /** The refusals that each Service shows since the last `update`, by UID. */
  get shown(): ReadonlyMap<string, LimitRefusals> {
    return this.#shown;
  }

  /**
   * Reads the minutes that have ended since the last call. `now` is in milliseconds since the Unix epoch. Rejects with AWAY if the store
   * is unreachable; then `shown` stays as it is.
   */
  async update(now: number): Promise<void> {
    const last = minuteOf(now - SETTLE_MS) - 1;
    const first = last - QUIET_MINUTES + 1;
    // If the clock was set back, the minutes up to `#readUntil` are in the future.
    const from = this.#readUntil > last ? last + 1 : Math.max(first, this.#readUntil + 1);
    const added: LimitRefusals[] = [];
    if (from <= last) {
      const { usage } = this.#options;
      const restoredAt = await usage.restoredAt();
      const trusted = restoredAt === undefined ? from : minuteOf(restoredAt) + RESTORE_MINUTES + 1;
      for (let minute = Math.max(from, trusted); minute <= last; minute += 1)
        added.push(...(await this.#refusalsIn(minute)));
    }
    this.#readUntil = last;
    this.#recent = [...this.#recent, ...added].filter(({ minute }) => minute >= first && minute <= last);
    this.#shown = refusalsToShow(this.#shown, this.#recent);
  }

  /** Returns the refusals of one minute. For a refusal by a connection limit, also reads how many connections are open. */
  async #refusalsIn(minute: number): Promise<LimitRefusals[]> {
    const { usage, leases } = this.#options;
    const rows = await usage.rows(periodsOf(minute).minute);
    const tenants = new Map(rows.map(({ service, tenant }) => [service, tenant]));
    const openByTenant = new Map<string, Promise<number>>();
    return Promise.all(
      limitRefusalsIn(rows, minute).map(async (refusals) => {
        const { service, reason } = refusals;
        const name = tenants.get(service);
        if (reason !== 'connection-limit' || name === undefined) return refusals;
        const ofTenant = openByTenant.get(name) ?? leases.openConnections({ kind: 'tenant', name });
        openByTenant.set(name, ofTenant);
        const ofService = leases.openConnections({ kind: 'service', uid: service });
        const [tenant, ownOpen] = await Promise.all([ofTenant, ofService]);
        return { ...refusals, used: { tenant, service: ownOpen } };
      }),
    );
  }
}
