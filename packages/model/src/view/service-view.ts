import { type Cutoff, cutoffFor } from '../cutoff.ts';
import type { ListenerReport } from '../heartbeat.ts';
import type { RefusalReason } from '../reason.ts';
import type { ListenerEntry, ServiceEntry } from '../table/entry.ts';
import { type Condition, conditionsFor } from './condition.ts';
import type { Fleet } from './fleet.ts';
import { type FleetIndex, indexOf, type ReportedBy } from './fleet-index.ts';
import type { PortView } from './port-view.ts';

export type ServiceState = 'Programmed' | 'Pending' | 'Refused' | 'Suspended';

/** What everybody is shown of a Service: tenant in its status, operator in console and command line. */
export interface ServiceView {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly tenant: string | null;
  readonly state: ServiceState;
  /** Of the condition that decides `state`. */
  readonly reason: string;
  readonly message: string;
  readonly addresses: readonly string[];
  readonly ports: readonly PortView[];
  readonly portErrors: readonly PortError[];
  readonly endpoints: { readonly ready: number; readonly total: number };
  readonly conditions: readonly Condition[];
}

export interface PortError {
  readonly port: number;
  readonly protocol: string;
  readonly reason: RefusalReason;
  readonly message: string;
}

/** A view of each Service of the table, sorted by namespace and name. */
export function serviceViewsFor(fleet: Fleet): ServiceView[] {
  const index = indexOf(fleet);
  return index.services
    .map((entry) => viewFor(entry, fleet, index))
    .sort((a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name));
}

/** The view of one Service by its entry. */
export function serviceViewFor(entry: ServiceEntry, fleet: Fleet): ServiceView {
  return viewFor(entry, fleet, indexOf(fleet));
}

function viewFor(entry: ServiceEntry, fleet: Fleet, index: FleetIndex): ServiceView {
  const listeners = index.listeners.get(entry.uid) ?? [];
  const ports = listeners.map((listener) => portViewFor(listener, index.reports.get(listener.node) ?? []));
  const addresses = addressesFor(entry, ports, fleet, index);
  const endpoints = index.endpoints.get(entry.uid) ?? { ready: 0, total: 0 };
  const cutoff = cutoffFor(fleet.cutoffs, entry, fleet.now);
  const errors = [...new Set(ports.flatMap((port) => (port.error === null ? [] : [`${port.node}: ${port.error}`])))];
  const facts = { addresses, errors, readyEndpoints: endpoints.ready, reachable: fleet.reachable };
  const conditions = conditionsFor(entry, facts, cutoff);
  return {
    uid: entry.uid,
    namespace: entry.namespace,
    name: entry.name,
    tenant: entry.tenant,
    ...stateFor(conditions, cutoff),
    addresses,
    ports,
    portErrors: entry.ports.flatMap(({ port, protocol, error }) =>
      error === null ? [] : [{ port, protocol, ...error }],
    ),
    endpoints,
    conditions,
  };
}

function portViewFor(listener: ListenerEntry, reports: readonly ReportedBy[]): PortView {
  const report = newestReport(listener, reports);
  return {
    port: listener.port,
    protocol: listener.protocol,
    node: listener.node,
    address: listener.address,
    bound: report?.bound ?? false,
    listening: report?.listening ?? false,
    error: report?.error ?? null,
  };
}

/** Of two lives on one node (an upgrade) the one that serves, then the newer one. A report for another Service is old. */
function newestReport(listener: ListenerEntry, reports: readonly ReportedBy[]): ListenerReport | undefined {
  let found: ListenerReport | undefined;
  for (const { byListener } of reports) {
    const report = byListener.get(listener.id);
    if (report !== undefined && report.service === listener.service && (found === undefined || report.bound))
      found = report;
  }
  return found;
}

/**
 * Published: the addresses of the nodes whose proxy has confirmed every port. An address that works is never cleared:
 * when no proxy confirms now, those of before stay as long as the Service holds their nodes.
 */
function addressesFor(
  entry: ServiceEntry,
  ports: readonly PortView[],
  fleet: Fleet,
  index: FleetIndex,
): readonly string[] {
  if (entry.settings === null) return [];
  const published = (node: string): readonly string[] => {
    const bound = ports.filter((port) => port.node === node);
    return (index.nodes.get(node)?.publishedAddresses ?? []).filter((address) =>
      bound.some((port) => isIPv6(port.address) === isIPv6(address)),
    );
  };
  const confirmed = entry.nodes.filter((node) => {
    const own = ports.filter((port) => port.node === node);
    return own.length > 0 && own.every((port) => port.bound);
  });
  const before = new Set(fleet.previous.get(entry.uid));
  const held = entry.nodes.flatMap(published).filter((address) => before.has(address));
  if (!fleet.reachable && held.length > 0) return sortedUnique(held);
  const live = confirmed.flatMap(published);
  const known = fleet.settling === true ? [...live, ...held] : live.length > 0 ? live : held;
  if (known.length > 0 || entry.nodes.length === 0) return sortedUnique(known);
  // It moves: until its new nodes have confirmed, the old addresses are better than none. Those of others were never ours.
  const ours = new Set([...index.nodes.values()].flatMap(({ publishedAddresses }) => publishedAddresses));
  return sortedUnique([...before].filter((address) => ours.has(address)));
}

/** Published are addresses of the families that the Service binds. */
function isIPv6(address: string): boolean {
  return address.includes(':');
}

function sortedUnique(addresses: readonly string[]): readonly string[] {
  return [...new Set(addresses)].sort();
}

function stateFor(
  conditions: readonly Condition[],
  cutoff: Cutoff | undefined,
): { readonly state: ServiceState; readonly reason: string; readonly message: string } {
  const of = (type: Condition['type']): { reason: string; message: string } => {
    const condition = conditions.find((candidate) => candidate.type === type);
    return { reason: condition?.reason ?? '', message: condition?.message ?? '' };
  };
  const isStatus = (type: Condition['type'], status: Condition['status']): boolean =>
    conditions.some((condition) => condition.type === type && condition.status === status);
  if (cutoff !== undefined) return { state: 'Suspended', ...of('Suspended') };
  if (isStatus('Programmed', 'True')) return { state: 'Programmed', ...of('Programmed') };
  if (isStatus('Accepted', 'False')) return { state: 'Refused', ...of('Accepted') };
  return { state: 'Pending', ...of('Programmed') };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
