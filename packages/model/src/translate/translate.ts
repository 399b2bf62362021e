// The one place that decides what is served. Pure: the controller, `weir translate`, the tests and the benchmarks call it.
import type { Problem } from '../problem.ts';
import type { Snapshot } from '../snapshot.ts';
import type { ServiceEntry } from '../table/entry.ts';
import { entriesOf, type RoutingTable, tableOf } from '../table/table.ts';
import type { Allocations } from './allocate/allocations.ts';
import { Translator } from './translator.ts';

export interface Translation {
  readonly table: RoutingTable;
  /** One for each Service that Weir takes, by namespace and name. */
  readonly statuses: readonly ServiceStatus[];
  /** By subject and code. */
  readonly problems: readonly Problem[];
}

/** What translation alone can say of a Service; whether it is bound, the proxies know. */
export type ServiceStatus = Omit<ServiceEntry, 'kind' | 'id' | 'settings'>;

/**
 * The routing table of a snapshot. `held` is what the last table granted (`heldFor`): who has a port keeps it, and the last
 * accepted settings of a Service serve on while its present ones are wrong. The order of the snapshot does not matter.
 */
export function translate(snapshot: Snapshot, held: Allocations): Translation {
  const decided = new Translator(snapshot.settings, held).translate(snapshot);
  const table = tableOf([...decided.table.entries.values()].sort((a, b) => (a.id < b.id ? -1 : 1)));
  const { problems } = decided;
  return { table, problems, statuses: statusesOf(table) };
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
