import type { ListenerReport } from '../heartbeat.ts';
import { joinSentences, quote } from '../message-text.ts';
import { DEGRADED_REASONS, type DegradedReason, type RefusalReason } from '../reason.ts';
import type { Snapshot } from '../snapshot.ts';
import type { Suspension } from '../suspension.ts';
import type { ListenerEntry, NodeEntry, Protocol, ServiceEntry, StatusReason } from '../table/entry.ts';
import { isOwned } from '../translate/owned-services.ts';
import { type Condition, conditionsFor, FLEET_UNREACHABLE, truncateMessage } from './condition.ts';
import type { FleetState } from './fleet-state.ts';
import type { ListenerReportIndex } from './listener-reports.ts';
import type { EndpointCount, Readiness } from './readiness.ts';

export type ServiceState = 'Programmed' | 'Pending' | 'Refused' | 'Suspended';

/** The public state of a Service: shown to tenants in its status, and to operators in the console and the command line. */
export interface ServiceView {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly tenant: string | null;
  readonly state: ServiceState;
  /** Reason and message of the condition that decides `state`. */
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

/** What `buildServiceView` reads about one Service. */
export interface ServiceViewInput {
  readonly entry: ServiceEntry;
  /** The listeners of the Service, sorted by node, port, protocol, address. */
  readonly listeners: readonly ListenerEntry[];
  readonly endpoints: EndpointCount;
  readonly readiness: Readiness;
  /** The suspension in force; undefined if there is none. */
  readonly suspension: Suspension | undefined;
  /** The addresses of the last view. */
  readonly previousAddresses: readonly string[];
}

/** The state of the fleet, which is the same for the views of all Services. */
export interface ServiceViewContext extends Pick<FleetState, 'reachable' | 'unpublished' | 'settling' | 'silentSince'> {
  /** The nodes of the table by name. */
  readonly nodes: ReadonlyMap<string, NodeEntry>;
  /** Whether a binding is allocated to a Service. */
  readonly isAllocated: (binding: Pick<ListenerEntry, 'node' | 'address' | 'protocol' | 'port'>) => boolean;
  readonly reports: ListenerReportIndex;
}

/** Returns the view of one Service. */
export function buildServiceView(input: ServiceViewInput, context: ServiceViewContext): ServiceView {
  const { entry, listeners, endpoints, readiness, suspension } = input;
  const ports = listeners.map((listener) => portViewFor(listener, context.reports.reportOf(listener)));
  const confirmed = confirmedNodes(entry, ports);
  const addresses = addressesFor(input, { ports, confirmed }, context);
  const errors = [...new Set(ports.flatMap((port) => (port.error === null ? [] : [`${port.node}: ${port.error}`])))];
  const facts = {
    addresses,
    confirmed: confirmed.length,
    errors,
    readiness,
    reachable: context.reachable && context.unpublished !== true,
    noProxySince: noProxySinceFor(entry, context),
  };
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
 * Returns the published addresses of the nodes whose proxy has confirmed every port. If there is no such node, or if reports may be
 * missing, also keeps the previous addresses of the Service's nodes, because an address that works must not be withdrawn.
 */
function addressesFor(
  input: ServiceViewInput,
  { ports, confirmed }: { readonly ports: readonly PortView[]; readonly confirmed: readonly string[] },
  context: ServiceViewContext,
): readonly string[] {
  const { entry } = input;
  const { nodes, reachable, settling } = context;
  if (entry.settings === null) return [];
  const published = (node: string): readonly string[] => {
    const bound = ports.filter((port) => port.node === node);
    return (nodes.get(node)?.publishedAddresses ?? []).filter((address) =>
      bound.some((port) => isIPv6(port.address) === isIPv6(address)),
    );
  };
  const previous = new Set(input.previousAddresses);
  const kept = entry.nodes.flatMap(published).filter((address) => previous.has(address));
  if (!reachable && kept.length > 0) return sortedUnique(kept);
  const live = confirmed.flatMap(published);
  const addresses = settling === true ? [...live, ...kept] : live.length > 0 ? live : kept;
  if (addresses.length > 0 || entry.nodes.length === 0) return sortedUnique(addresses);
  // The Service moves to other nodes. Until the proxies of the new nodes confirm the ports, each previous address stays published, unless
  // the fleet no longer has the address or another Service has one of the ports at this address.
  const old = [...previous].filter((address) => {
    const owners = [...nodes.values()].filter(({ publishedAddresses }) => publishedAddresses.includes(address));
    return owners.length > 0 && !owners.some((node) => isTakenOver(entry, node, address, context));
  });
  return sortedUnique(old);
}

/** Returns the nodes of the Service whose proxy has confirmed every port. */
function confirmedNodes({ nodes }: ServiceEntry, ports: readonly PortView[]): readonly string[] {
  return nodes.filter((node) => {
    const own = ports.filter((port) => port.node === node);
    return own.length > 0 && own.every((port) => port.bound);
  });
}

/** Returns since when the last proxy of the Service has been silent; undefined if a proxy is alive. */
function noProxySinceFor({ nodes }: ServiceEntry, { silentSince }: ServiceViewContext): number | undefined {
  const times = nodes.flatMap((node) => silentSince?.get(node) ?? []);
  return nodes.length > 0 && times.length === nodes.length ? Math.max(...times) : undefined;
}

/** Whether another Service has one of the ports at this address, so that clients would reach that Service. */
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

function isIPv6(address: string): boolean {
  return address.includes(':');
}

function sortedUnique(addresses: readonly string[]): readonly string[] {
  return [...new Set(addresses)].sort();
}

function stateFor(
  conditions: readonly Condition[],
  suspension: Suspension | undefined,
): { readonly state: ServiceState; readonly reason: string; readonly message: string } {
  const reasonOf = (type: Condition['type']): { reason: string; message: string } => {
    const condition = conditions.find((candidate) => candidate.type === type);
    return { reason: condition?.reason ?? '', message: condition?.message ?? '' };
  };
  const isStatus = (type: Condition['type'], status: Condition['status']): boolean =>
    conditions.some((condition) => condition.type === type && condition.status === status);
  if (suspension !== undefined) return { state: 'Suspended', ...reasonOf('Suspended') };
  if (isStatus('Programmed', 'True')) return { state: 'Programmed', ...reasonOf('Programmed') };
  if (isStatus('Accepted', 'False')) return { state: 'Refused', ...reasonOf('Accepted') };
  return { state: 'Pending', ...reasonOf('Programmed') };
}

/** Returns the view with one more reason in its Degraded condition, whose reason becomes the more severe of the two reasons. */
export function withDegradedReason(view: ServiceView, added: StatusReason<DegradedReason>): ServiceView {
  const degraded = view.conditions.find(({ type }) => type === 'Degraded');
  const others = view.conditions.filter((condition) => condition !== degraded);
  return { ...view, conditions: [...others, mergeDegraded(degraded, added)] };
}

function mergeDegraded(before: Condition | undefined, added: StatusReason<DegradedReason>): Condition {
  const condition: Condition = { type: 'Degraded', status: 'True', ...added };
  if (before === undefined) return condition;
  const order = DEGRADED_REASONS.indexOf(before.reason as DegradedReason) - DEGRADED_REASONS.indexOf(added.reason);
  const [first, second] = order <= 0 ? [before, condition] : [condition, before];
  return { ...first, message: truncateMessage(joinSentences([first.message, second.message])) };
}

/** Returns the view of a Service whose status the field manager `manager` overwrites again and again. */
export function withForeignController(view: ServiceView, manager: string): ServiceView {
  const message = `the field manager ${quote(manager)} overwrites the status of this Service again and again, so the status may show wrong addresses; Weir therefore writes its status less often, at last every 5 minutes; let only one controller serve the Service: give the Service a spec.loadBalancerClass, or disable the other controller`;
  return withDegradedReason(view, { reason: 'ForeignController', message });
}

/** The state of one listener: a port at an address of a node. */
export interface PortView {
  readonly port: number;
  readonly protocol: Protocol;
  readonly node: string;
  readonly address: string;
  readonly bound: boolean;
  readonly listening: boolean;
  readonly error: string | null;
}

/** Returns the views of Weir's Services if the store has been unreachable since the start, so that no Service has been decided yet. */
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
