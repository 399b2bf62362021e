// Chooses the nodes that bind the ports of a Service. The Service owns bindings (node, address, protocol, port), and on shared ports also
// hosts (pool, port, host). A Service keeps the bindings and hosts that it owns.

import type { FleetSettings } from '../../fleet-settings.ts';
import type { RefusalReason } from '../../reason.ts';
import { reservationFor } from '../../reserved-ports.ts';
import type { ServiceObject, ServicePort } from '../../snapshot.ts';
import {
  type ListenerEntry,
  listenerId,
  type NodeEntry,
  type Protocol,
  type StatusReason,
  sharedListenerId,
} from '../../table/entry.ts';
import { bindAddressesFor, type Nodes } from '../nodes.ts';
import type { ServiceAllocation } from './allocations.ts';
import { portHostKey, portKey } from './allocations.ts';
import { hostClaimFor } from './host-claims.ts';
import { conflictMessage, type PortConflict } from './placement-messages.ts';
import { bindingKey } from './port-allocations.ts';
import {
  conflictWith,
  type HostConflictInput,
  hostConflictRefusal,
  isFleetSharedPort,
  type PortModes,
} from './shared-ports.ts';

export interface Placement {
  readonly listeners: readonly ListenerEntry[];
  /** Names of the chosen nodes, sorted. */
  readonly nodes: readonly string[];
  /** The reason for each port that is not served although other ports of the Service are served. */
  readonly conflicts: ReadonlyMap<ServicePort, StatusReason<RefusalReason>>;
  /** True if the Service could have a further node, but `mayAddNodes` was false. */
  readonly wantsMoreNodes: boolean;
  /** True if the Service has fewer nodes because of the tenant's limit of ports. */
  readonly isLimited: boolean;
}

export type PlacementResult =
  | { readonly kind: 'placed'; readonly placement: Placement }
  /** No schedulable node, and no node that the Service uses already, has an address of the Service's IP families. */
  | { readonly kind: 'no-nodes' }
  | { readonly kind: 'conflict'; readonly refusal: StatusReason<RefusalReason> };

export interface PlacementRequest extends Omit<HostConflictInput, 'pools'> {
  readonly fleet: FleetSettings;
  /** The ports to place: all ports that no earlier check refused. */
  readonly ports: readonly ServicePort[];
  readonly modes: PortModes;
  readonly allocation: Pick<ServiceAllocation, 'exclusivePorts' | 'ports'> | undefined;
  /** The nodes that may be used, in order of preference. */
  readonly nodes: readonly NodeEntry[];
  /** Text that names the nodes in messages, such as `the fleet` or `pool "edge"`. */
  readonly nodesText: string;
  /** Names of the nodes that get no new Services. */
  readonly unschedulableNodes: ReadonlySet<string>;
  /** Names of the nodes that a Service leaves if other nodes are free. */
  readonly lostNodes: ReadonlySet<string>;
  /** The number of nodes that the Service wants. The Service gets fewer nodes if not enough nodes are free. */
  readonly nodeCount: number;
  /**
   * Whether the Service may get more nodes than it has. If false, a Service without nodes gets one node. Further nodes are given only
   * after every Service that can have a node has one.
   */
  readonly mayAddNodes: boolean;
  /** Returns on how many nodes the tenant may have this number of ports of the Service. Called only if the Service gets further nodes. */
  readonly affordableNodes: (ports: number) => number;
}

/**
 * Places a Service on nodes where all its ports are free. A Service that already has nodes keeps them, even if some of its ports are
 * taken there.
 */
export function placeService(placementRequest: PlacementRequest): PlacementResult {
  const { service, portAllocations, nodeCount, unschedulableNodes, nodes } = placementRequest;
  const nodesInUse = nodesWithPorts(placementRequest.ports, portAllocations.listenersOf(service.uid));
  const pools = new Set(nodes.map(({ pool }) => pool));
  const request: PlacementState = { ...placementRequest, nodesInUse, pools };
  const usable = request.nodes.filter(
    (node) =>
      bindAddressesFor(node, service).length > 0 && (!unschedulableNodes.has(node.name) || nodesInUse.has(node.name)),
  );
  if (usable.length === 0) return { kind: 'no-nodes' };
  const kept = usable.filter(({ name }) => nodesInUse.has(name));
  const conflicts = new Map<ServicePort, StatusReason<RefusalReason>>();
  for (const port of request.ports) {
    const refusal = portConflictFor(port, kept, request);
    if (refusal !== undefined) conflicts.set(port, refusal);
  }
  const [first] = conflicts.values();
  if (kept.length === 0 && first !== undefined) return { kind: 'conflict', refusal: first };
  const ports = request.ports.filter((port) => !conflicts.has(port));
  const wanted = ports.length === 0 ? [] : chooseNodes(usable, { kept, ports, nodeCount }, request);
  const firstNodes = Math.max(1, kept.length);
  const wantsMoreNodes = !request.mayAddNodes && wanted.length > firstNodes;
  const affordable =
    request.mayAddNodes && wanted.length > firstNodes ? request.affordableNodes(ports.length) : firstNodes;
  const chosen = wanted.slice(0, Math.max(firstNodes, affordable));
  const isLimited = !wantsMoreNodes && chosen.length < wanted.length;
  chosen.sort((a, b) => (a.name < b.name ? -1 : 1));
  if (chosen.length === 0)
    return { kind: 'conflict', refusal: first ?? portConflictRefusal(usable, request.ports, request) };
  const listeners = chosen.flatMap((node) => ports.flatMap((port) => listenersFor(node, port, request)));
  const nodeNames = chosen.map((node) => node.name);
  return { kind: 'placed', placement: { listeners, nodes: nodeNames, conflicts, wantsMoreNodes, isLimited } };
}

/** Returns the names of the nodes that have a listener for at least one of the ports. */
export function nodesWithPorts(
  ports: readonly ServicePort[],
  listeners: readonly ListenerEntry[],
): ReadonlySet<string> {
  const keys = new Set(ports.map(portKey));
  return new Set(listeners.filter((listener) => keys.has(portKey(listener))).map(({ node }) => node));
}

/**
 * Returns a function that reports whether a port has a listener. The set of port keys is built only once, because a node with many
 * addresses has many listeners.
 */
export function allocatedPortTest(listeners: readonly ListenerEntry[]): (port: ServicePort) => boolean {
  const keys = new Set(listeners.map(portKey));
  return (port) => keys.has(portKey(port));
}

/**
 * Returns the listeners that a Service may keep: the Service still has the port, and the node still binds the address for the Service.
 */
export function retainedListeners(
  listeners: readonly ListenerEntry[],
  service: ServiceObject,
  nodes: Nodes,
): readonly ListenerEntry[] {
  const ports = new Set(service.ports.map(portKey));
  const addressesByNode = new Map<string, ReadonlySet<string>>();
  for (const name of new Set(listeners.map(({ node }) => node))) {
    const node = nodes.byName.get(name);
    addressesByNode.set(name, new Set(node === undefined ? [] : bindAddressesFor(node, service)));
  }
  return listeners.filter(
    (listener) => ports.has(portKey(listener)) && addressesByNode.get(listener.node)?.has(listener.address) === true,
  );
}

interface PlacementState extends PlacementRequest, HostConflictInput {
  /** Names of the nodes that have a listener of the Service for at least one of `ports`. */
  readonly nodesInUse: ReadonlySet<string>;
}

/**
 * Returns why one port is refused; undefined if the port is not refused. Either another Service owns a host of the port in the pools, or
 * the port is taken on a node that the Service keeps.
 */
function portConflictFor(
  port: ServicePort,
  kept: readonly NodeEntry[],
  request: PlacementState,
): StatusReason<RefusalReason> | undefined {
  const hostRefusal = request.modes.get(port) === 'shared' ? hostConflictRefusal(port, request) : undefined;
  if (hostRefusal !== undefined) return hostRefusal;
  return portConflictOn(kept, port, request) === undefined ? undefined : portConflictRefusal(kept, [port], request);
}

interface NodeChoice {
  readonly kept: readonly NodeEntry[];
  readonly ports: readonly ServicePort[];
  readonly nodeCount: number;
}

/**
 * Chooses up to `nodeCount` nodes, in this order: kept nodes that are not lost, then free nodes in order of preference, then kept nodes
 * that are lost.
 */
function chooseNodes(
  usable: readonly NodeEntry[],
  { kept, ports, nodeCount }: NodeChoice,
  request: PlacementState,
): NodeEntry[] {
  const chosen = kept.filter(({ name }) => !request.lostNodes.has(name)).slice(0, nodeCount);
  for (const node of usable) {
    if (chosen.length === nodeCount) break;
    const isFree = !kept.includes(node) && ports.every((port) => otherOwnerOn(node, port, request) === undefined);
    if (isFree) chosen.push(node);
  }
  chosen.push(...kept.filter(({ name }) => request.lostNodes.has(name)).slice(0, nodeCount - chosen.length));
  return chosen;
}

/** Returns the text for the owner that blocks the port on this node; undefined if the Service can have the port there. */
function otherOwnerOn(node: NodeEntry, port: ServicePort, request: PlacementState): string | undefined {
  const { service, portAllocations, modes, allocation, fleet, nodesInUse, ownerText } = request;
  const isShared = modes.get(port) === 'shared';
  // A Service keeps a port that was reserved or shared after the Service got the port. The Service gets this port on further nodes only
  // if all nodes of the Service are gone.
  const isKept = (allocatedPorts: { has(key: string): boolean } | undefined): boolean =>
    nodesInUse.has(node.name) || (nodesInUse.size === 0 && allocatedPorts?.has(portKey(port)) === true);
  if (reservationFor(port.port, fleet) !== undefined && !isKept(allocation?.ports)) return 'a port reservation';
  if (!isShared && isFleetSharedPort(port, fleet) && !isKept(allocation?.exclusivePorts))
    return 'the fleet (for sharing by host name)';
  for (const listener of listenersFor(node, port, request)) {
    const binding = bindingKey(listener);
    const sharers = isShared ? [] : portAllocations.sharersOf(binding);
    for (const uid of [portAllocations.ownerOf(binding) ?? service.uid, ...sharers])
      if (uid !== service.uid) return ownerText(uid);
  }
  return isShared ? hostOwnerOn(node, port, request) : undefined;
}

/** Returns the text for another owner of one of the hosts on this node, if the owner cannot share the host; undefined if there is none. */
function hostOwnerOn(
  { name }: NodeEntry,
  port: ServicePort,
  { service, settings, portAllocations, ownerText }: PlacementState,
): string | undefined {
  const claim = hostClaimFor(port, service.namespace, settings);
  for (const host of settings.hosts) {
    for (const [uid, nodes] of portAllocations.hostOwnersOf(portHostKey(port, host))) {
      const isOther = uid !== service.uid && nodes.has(name);
      if (isOther && conflictWith(uid, port, { claim, portAllocations }) !== undefined) return ownerText(uid);
    }
  }
  return undefined;
}

function listenersFor(node: NodeEntry, port: ServicePort, { service, modes }: PlacementState): ListenerEntry[] {
  return bindAddressesFor(node, service).map((address) => {
    const protocol = port.protocol as Protocol;
    const binding = { node: node.name, address, port: port.port, protocol, service: service.uid };
    return modes.get(port) === 'shared'
      ? { kind: 'listener', id: sharedListenerId(binding), ...binding, shared: true }
      : { kind: 'listener', id: listenerId(binding), ...binding };
  });
}

/** Returns the number of nodes on which the port is taken, and the owners; undefined if the port is free on all nodes. */
function portConflictOn(
  nodes: readonly NodeEntry[],
  port: ServicePort,
  request: PlacementState,
): PortConflict | undefined {
  const owners = nodes.map((node) => otherOwnerOn(node, port, request)).filter((owner) => owner !== undefined);
  return owners.length === 0 ? undefined : { port, nodeCount: owners.length, owners: [...new Set(owners)].sort() };
}

function portConflictRefusal(
  nodes: readonly NodeEntry[],
  ports: readonly ServicePort[],
  request: PlacementState,
): StatusReason<RefusalReason> {
  const conflicts = ports
    .map((port) => portConflictOn(nodes, port, request))
    .filter((conflict) => conflict !== undefined);
  return { reason: 'PortConflict', message: conflictMessage(conflicts, nodes.length, request.nodesText) };
}
