import type { Heartbeat } from '../heartbeat.ts';
import type { Suspension } from '../suspension.ts';
import type { RoutingTable } from '../table/table.ts';

/** The input of all views: the routing table and the current reports of the fleet. */
export interface FleetState {
  readonly table: RoutingTable;
  /** The last heartbeats of the proxies that count as alive. */
  readonly heartbeats: readonly Heartbeat[];
  readonly suspensions: readonly Suspension[];
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** By Service UID, the addresses of the last view. After a start of the process, these are the addresses in the status of the Service. */
  readonly previousAddresses: Pick<ReadonlyMap<string, readonly string[]>, 'get'>;
  /** False while the store is unreachable. Addresses are then not withdrawn, because the state of the proxies is unknown. */
  readonly reachable: boolean;
  /** True while the store refuses the routing table, for example because Redis is full. New Services are then not served. */
  readonly unpublished?: boolean;
  /**
   * True while heartbeats of live proxies may still be missing, after a change of the leader or of the epoch. Addresses are then not
   * withdrawn.
   */
  readonly settling?: boolean;
  /**
   * By node, since when the node has had no live proxy (milliseconds since the epoch). Contains only nodes to report; see `NodeSilence`.
   * Absent if no node is known to be silent.
   */
  readonly silentSince?: ReadonlyMap<string, number>;
  /** The last listener errors of proxies that do not report now. These heartbeats do not count as signs of life. */
  readonly lastErrors?: readonly Heartbeat[];
}
