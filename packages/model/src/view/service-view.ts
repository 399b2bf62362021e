import type { ListenerReport } from '../heartbeat.ts';
import type { RefusalReason } from '../reason.ts';
import type { Snapshot } from '../snapshot.ts';
import type { Suspension } from '../suspension.ts';
import type { ListenerEntry, NodeEntry, Protocol, ServiceEntry } from '../table/entry.ts';
import { isOwned } from '../translate/owned-services.ts';
import { type Condition, conditionsFor, FLEET_UNREACHABLE } from './condition.ts';
import type { FleetState } from './fleet-state.ts';
import type { ListenerReportIndex } from './listener-reports.ts';
import type { EndpointCount, Readiness } from './readiness.ts';

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

/** One Service: what was decided of it, and what it showed before. */
export interface ServiceViewInput {
  readonly entry: ServiceEntry;
  /** Sorted by node, port, protocol, address. */
  readonly listeners: readonly ListenerEntry[];
  readonly endpoints: EndpointCount;
  readonly readiness: Readiness;
  /** In force now. */
  readonly suspension: Suspension | undefined;
  /** The addresses of the last view. */
  readonly previousAddresses: readonly string[];
}

/** What all views are made of. */
export interface ServiceViewContext extends Pick<FleetState, 'reachable' | 'settling'> {
  readonly nodes: ReadonlyMap<string, NodeEntry>;
  /** A Service holds this place on a node. */
  readonly isAllocated: (place: Pick<ListenerEntry, 'node' | 'address' | 'protocol' | 'port'>) => boolean;
  readonly reports: ListenerReportIndex;
}

/** What is shown of one Service. */
export function buildServiceView(subject: ServiceViewInput, world: ServiceViewContext): ServiceView {
  const { entry, listeners, endpoints, readiness, suspension } = subject;
  const ports = listeners.map((listener) => portViewFor(listener, world.reports.reportOf(listener)));
  const confirmed = confirmedNodes(entry, ports);
  const addresses = addressesFor(subject, { ports, confirmed }, world);
  const errors = [...new Set(ports.flatMap((port) => (port.error === null ? [] : [`${port.node}: ${port.error}`])))];
  const facts = { addresses, confirmed: confirmed.length, errors, readiness, reachable: world.reachable };
  const conditions = conditionsFor(entry, facts, suspension);
  return {
    uid: entry.uid,
    namespace: entry.namespace,
    name: entry.name,
    tenant: entry.tenant,
    ...stateFor(conditions, suspension),
    addresses,
    ports,
    portErrors: entry.ports.flatMap(({ port, protocol, error }) =>
      error === null ? [] : [{ port, protocol, ...error }],
    ),
    endpoints,
    conditions,
  };
}

function portViewFor(listener: ListenerEntry, report: ListenerReport | undefined): PortView {
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

/**
 * Published: the addresses of the nodes whose proxy has confirmed every port. An address that works is never cleared:
 * when no proxy confirms now, those of before stay as long as the Service holds their nodes.
 */
function addressesFor(
  subject: ServiceViewInput,
  { ports, confirmed }: { readonly ports: readonly PortView[]; readonly confirmed: readonly string[] },
  world: ServiceViewContext,
): readonly string[] {
  const { entry } = subject;
  const { nodes, reachable, settling } = world;
  if (entry.settings === null) return [];
  const published = (node: string): readonly string[] => {
    const bound = ports.filter((port) => port.node === node);
    return (nodes.get(node)?.publishedAddresses ?? []).filter((address) =>
      bound.some((port) => isIPv6(port.address) === isIPv6(address)),
    );
  };
  const before = new Set(subject.previousAddresses);
  const held = entry.nodes.flatMap(published).filter((address) => before.has(address));
  if (!reachable && held.length > 0) return sortedUnique(held);
  const live = confirmed.flatMap(published);
  const known = settling === true ? [...live, ...held] : live.length > 0 ? live : held;
  if (known.length > 0 || entry.nodes.length === 0) return sortedUnique(known);
  // It moves: until its new nodes have confirmed, the old addresses are better than none. Those of others were never ours.
  const kept = [...before].filter((address) => {
    const at = [...nodes.values()].filter(({ publishedAddresses }) => publishedAddresses.includes(address));
    return at.length > 0 && !at.some((node) => isTakenOver(entry, node, address, world));
  });
  return sortedUnique(kept);
}

/** Nodes whose proxy has confirmed every port. */
function confirmedNodes({ nodes }: ServiceEntry, ports: readonly PortView[]): readonly string[] {
  return nodes.filter((node) => {
    const own = ports.filter((port) => port.node === node);
    return own.length > 0 && own.every((port) => port.bound);
  });
}

/** One of the ports that the Service had at this address is another's by now: clients would reach that one. */
function isTakenOver(
  entry: ServiceEntry,
  node: NodeEntry,
  published: string,
  { isAllocated }: ServiceViewContext,
): boolean {
  const bound = node.bindAddresses.filter((address) => isIPv6(address) === isIPv6(published));
  return entry.ports.some(
    ({ port, protocol }) =>
      isProtocol(protocol) && bound.some((address) => isAllocated({ node: node.name, address, protocol, port })),
  );
}

function isProtocol(protocol: string): protocol is Protocol {
  return protocol === 'TCP' || protocol === 'UDP';
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
  cutoff: Suspension | undefined,
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

/** One listener: a port on a node. */
export interface PortView {
  readonly port: number;
  readonly protocol: Protocol;
  readonly node: string;
  readonly address: string;
  readonly bound: boolean;
  readonly listening: boolean;
  readonly error: string | null;
}

/** What to say of the Services that Weir takes while nothing can be decided, because the store has not been reached since the start. */
export function storeUnreachableViewsFor({
  services,
  settings,
}: Pick<Snapshot, 'services' | 'settings'>): ServiceView[] {
  const { reason, message } = FLEET_UNREACHABLE;
  return services
    .filter((service) => isOwned(service, settings))
    .map(({ uid, namespace, name }) => ({
      uid,
      namespace,
      name,
      tenant: null,
      state: 'Pending',
      reason,
      message,
      addresses: [],
      ports: [],
      portErrors: [],
      endpoints: { ready: 0, total: 0 },
      conditions: [FLEET_UNREACHABLE],
    }));
}
