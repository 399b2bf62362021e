import {
  entriesOf,
  NO_NOTICES,
  type RoutingTable,
  type TrafficLevel,
  trafficLevels,
  trafficMessages,
  type UsageNotices,
  type UsageRow,
  usageNoticesFor,
} from '@weir/model';
import type { Clock } from '@weir/runtime';
import { type LeaseStore, RefusalWatch, type UsageStore } from '@weir/store';
import { recentMonths } from './tenant-usage.ts';

export interface UsageNoticeWatchOptions {
  readonly store: UsageStore;
  readonly leases: Pick<LeaseStore, 'openConnections'>;
  readonly clock: Clock;
  /** Called in each round with the usage of this month of all tenants with a limit `trafficPerMonth`. */
  readonly onUsage?: ((table: RoutingTable, rows: readonly UsageRow[]) => void) | undefined;
}

/** Reads from the ledger what Services show about their usage: the used traffic of their tenant, and limits that refuse their clients. */
export class UsageNoticeWatch {
  readonly #options: UsageNoticeWatchOptions;
  readonly #refusals: RefusalWatch;
  #notices = NO_NOTICES;

  constructor(options: UsageNoticeWatchOptions) {
    this.#options = options;
    this.#refusals = new RefusalWatch({ usage: options.store, leases: options.leases });
  }

  /** The notices of the last `update`. */
  get notices(): UsageNotices {
    return this.#notices;
  }

  /** Reads the ledger. Returns the traffic level of each tenant with a limit `trafficPerMonth`. Rejects if the store is unreachable. */
  async update(table: RoutingTable): Promise<ReadonlyMap<string, TrafficLevel>> {
    const { clock, onUsage } = this.#options;
    const rows = await this.#limitedUsage(table);
    onUsage?.(table, rows);
    const tenants = entriesOf(table, 'tenant');
    const levels = trafficLevels(tenants, rows);
    await this.#refusals.update(clock.now());
    this.#notices = usageNoticesFor(table, {
      traffic: trafficMessages(tenants, levels, clock.now()),
      refusals: this.#refusals.shown,
    });
    return levels;
  }

  /** Returns the usage of this month of the tenants with a limit `trafficPerMonth`. */
  async #limitedUsage(table: RoutingTable): Promise<readonly UsageRow[]> {
    const { store, clock } = this.#options;
    const limited = entriesOf(table, 'tenant').filter(({ limits }) => limits.trafficPerMonth !== undefined);
    const [month] = recentMonths(clock.now());
    return (await Promise.all(limited.map(({ name }) => store.rows(month, name)))).flat();
  }
}
