import type { Heartbeat } from '../heartbeat.ts';
import type { Suspension } from '../suspension.ts';
import type { RoutingTable } from '../table/table.ts';

/** What the views are made of: the table, and what the fleet says now. */
export interface FleetState {
  readonly table: RoutingTable;
  /** Of the proxies that count as alive. */
  readonly heartbeats: readonly Heartbeat[];
  readonly suspensions: readonly Suspension[];
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** By Service UID: the addresses of the last view; at start those in the status of the Service. */
  readonly previousAddresses: Pick<ReadonlyMap<string, readonly string[]>, 'get'>;
  /** False while the store is away: nothing new is known, so nothing is withdrawn. */
  readonly reachable: boolean;
  /** True while proxies that are alive may not have been heard yet (a new leader, a new epoch): nothing is withdrawn. */
  readonly settling?: boolean;
}
