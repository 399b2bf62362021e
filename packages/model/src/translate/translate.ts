// Translates one snapshot into a routing table, without side effects. `weir translate` and the tests call `translate`. The controller
// uses the incremental `Translator`, on which `translate` is based.
import type { Problem } from '../problem.ts';
import type { Snapshot } from '../snapshot.ts';
import type { ServiceEntry } from '../table/entry.ts';
import { entriesOf, type RoutingTable, tableOf } from '../table/table.ts';
import type { Allocations } from './allocate/allocations.ts';
import { Translator } from './translator.ts';

export interface Translation {
  readonly table: RoutingTable;
  /** The status of each Service that Weir owns, sorted by namespace and name. */
  readonly statuses: readonly ServiceStatus[];
  /** Sorted by subject, code and message. */
  readonly problems: readonly Problem[];
}

/** The part of a Service's status that follows from the snapshot alone. Only the proxies know whether the listeners are bound. */
export type ServiceStatus = Omit<ServiceEntry, 'kind' | 'id' | 'settings'>;

/**
 * Returns the routing table of a snapshot, with the statuses and problems. `allocations` is what the last table allocated (see
 * `allocationsFor`). A Service keeps its allocated ports, and its last accepted settings stay in effect while its new settings are
 * refused. The order of the lists in the snapshot does not matter.
 */
export function translate(snapshot: Snapshot, allocations: Allocations): Translation {
  const output = new Translator(snapshot.settings, allocations).translate(snapshot);
  const table = tableOf([...output.table.entries.values()].sort((a, b) => (a.id < b.id ? -1 : 1)));
  return { table, problems: output.problems, statuses: statusesOf(table) };
}

function statusesOf(table: RoutingTable): ServiceStatus[] {
  const statuses = entriesOf(table, 'service').map(
    ({ kind: _kind, id: _id, settings: _settings, ...status }) => status,
  );
  return statuses.sort(byName);
}

function byName(a: ServiceStatus, b: ServiceStatus): number {
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}
