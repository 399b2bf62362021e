// Which nodes hold the ports of a Service. The unit that is owned is (node address, protocol, port), and on ports that the fleet
// shares (pool, port, host): who has it keeps it.

import type { FleetSettings } from '../../fleet-settings.ts';
import type { RefusalReason } from '../../reason.ts';
import { reservationFor } from '../../reserved-ports.ts';
import type { ServicePort } from '../../snapshot.ts';
import {
  type ListenerEntry,
  listenerId,
  type NodeEntry,
  type Protocol,
  type StatusReason,
  sharedListenerId,
} from '../../table/entry.ts';
import { bindAddressesFor } from '../nodes.ts';
import type { ServiceAllocation } from './allocations.ts';
import { conflictMessage, type PortConflict } from './placement-messages.ts';
import { bindingKey } from './port-allocations.ts';
import { portHostKey, portKey } from './port-key.ts';
import { type HostConflictInput, hostConflictRefusal, isFleetSharedPort, type PortModes } from './shared-ports.ts';

export interface Placement {
  readonly listeners: readonly ListenerEntry[];
  /** Sorted by name. */
  readonly nodes: readonly string[];
  /** By port, why it is not served although the others are. */
  readonly conflicts: ReadonlyMap<ServicePort, StatusReason<RefusalReason>>;
}

export type PlacementResult =
  | { readonly kind: 'placed'; readonly placement: Placement }
  /** No node that may be used has an address of the Service's families. */
  | { readonly kind: 'no-nodes' }
  | { readonly kind: 'conflict'; readonly refusal: StatusReason<RefusalReason> };

export interface PlacementRequest extends Omit<HostConflictInput, 'pools'> {
  readonly fleet: FleetSettings;
  /** Those that could be served. */
  readonly ports: readonly ServicePort[];
  /** How it would have each. */
  readonly modes: PortModes;
  readonly allocation: Pick<ServiceAllocation, 'exclusivePorts' | 'ports'> | undefined;
  /** That may be used, the best first. */
  readonly nodes: readonly NodeEntry[];
  /** How a message calls them together: `the fleet`, `pool "edge"`. */
  readonly nodesText: string;
  /** Of whose nodes nothing new is put: names. */
  readonly unschedulableNodes: ReadonlySet<string>;
  /** In whose place it gets others where there are some: names. */
  readonly lostNodes: ReadonlySet<string>;
  /** On so many nodes, as long as there are so many. */
  readonly nodeCount: number;
}

/**
 * Places a Service on nodes where all its ports are free; one that is placed keeps its nodes and loses only ports. In `taken` the
 * Service is given what it gets.
 */
export function placeService(asked: PlacementRequest): PlacementResult {
  const { service, portAllocations, nodeCount, unschedulableNodes } = asked;
  const nodesInUse = nodesWithPorts(asked.ports, portAllocations.listenersOf(service.uid));
  const request: PlacementState = { ...asked, nodesInUse, pools: new Set(asked.nodes.map(({ pool }) => pool)) };
  const able = request.nodes.filter(
    (node) =>
      bindAddressesFor(node, service).length > 0 && (!unschedulableNodes.has(node.name) || nodesInUse.has(node.name)),
  );
  if (able.length === 0) return { kind: 'no-nodes' };
  const kept = able.filter(({ name }) => nodesInUse.has(name));
  const conflicts = new Map<ServicePort, StatusReason<RefusalReason>>();
  for (const port of request.ports) {
    const lost = portConflictFor(port, kept, request);
    if (lost !== undefined) conflicts.set(port, lost);
  }
  const [first] = conflicts.values();
  if (kept.length === 0 && first !== undefined) return { kind: 'conflict', refusal: first };
  const ports = request.ports.filter((port) => !conflicts.has(port));
  const chosen = ports.length === 0 ? [] : chooseNodes(able, { kept, ports, wanted: nodeCount }, request);
  if (chosen.length === 0)
    return { kind: 'conflict', refusal: first ?? portConflictRefusal(able, request.ports, request) };
  const listeners = chosen.flatMap((node) => ports.flatMap((port) => listenersFor(node, port, request)));
  portAllocations.allocate(service.uid, listeners, request.hosts);
  return { kind: 'placed', placement: { listeners, nodes: chosen.map((node) => node.name), conflicts } };
}

/** Names of the nodes on which at least one of the ports is held. */
export function nodesWithPorts(
  ports: readonly ServicePort[],
  listeners: readonly ListenerEntry[],
): ReadonlySet<string> {
  const wanted = new Set(ports.map(portKey));
  return new Set(listeners.filter((listener) => wanted.has(portKey(listener))).map(({ node }) => node));
}

/** Answers whether a port is one of those of the listeners, of which a node with many addresses makes very many. */
export function allocatedPortTest(listeners: readonly ListenerEntry[]): (port: ServicePort) => boolean {
  const held = new Set(listeners.map(portKey));
  return (port) => held.has(portKey(port));
}

interface PlacementState extends PlacementRequest, HostConflictInput {
  /** Names of the nodes that hold some of the ports for it. */
  readonly nodesInUse: ReadonlySet<string>;
}

/** Why a port is not to be had although the others are, on nodes that are kept; where its hosts are taken, it is to be had nowhere. */
function portConflictFor(
  port: ServicePort,
  kept: readonly NodeEntry[],
  request: PlacementState,
): StatusReason<RefusalReason> | undefined {
  const lost = request.modes.get(port) === 'shared' ? hostConflictRefusal(port, request) : undefined;
  if (lost !== undefined) return lost;
  return portConflictOn(kept, port, request) === undefined ? undefined : portConflictRefusal(kept, [port], request);
}

interface NodeChoice {
  readonly kept: readonly NodeEntry[];
  readonly ports: readonly ServicePort[];
  readonly wanted: number;
}

/** Those that it has, then the first that are free, and of those that it has the lost ones last; sorted by name. */
function chooseNodes(
  able: readonly NodeEntry[],
  { kept, ports, wanted }: NodeChoice,
  request: PlacementState,
): NodeEntry[] {
  const chosen = kept.filter(({ name }) => !request.lostNodes.has(name)).slice(0, wanted);
  for (const node of able) {
    if (chosen.length === wanted) break;
    const isFree = !kept.includes(node) && ports.every((port) => otherOwnerOn(node, port, request) === undefined);
    if (isFree) chosen.push(node);
  }
  chosen.push(...kept.filter(({ name }) => request.lostNodes.has(name)).slice(0, wanted - chosen.length));
  return chosen.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Who else has the port on this node, as a message calls it. */
function otherOwnerOn(node: NodeEntry, port: ServicePort, request: PlacementState): string | undefined {
  const { service, portAllocations, modes, allocation, fleet, nodesInUse, ownerText } = request;
  const isShared = modes.get(port) === 'shared';
  // What it had before the port was reserved or shared it keeps where it has it, and nowhere else, unless all its nodes are gone.
  const isKept = (had: { has(key: string): boolean } | undefined): boolean =>
    nodesInUse.has(node.name) || (nodesInUse.size === 0 && had?.has(portKey(port)) === true);
  if (reservationFor(port.port, fleet) !== undefined && !isKept(allocation?.ports))
    return 'the nodes, which need it themselves';
  if (!isShared && isFleetSharedPort(port, fleet) && !isKept(allocation?.exclusivePorts))
    return 'the fleet, which shares it by host names';
  for (const listener of listenersFor(node, port, request)) {
    const place = bindingKey(listener);
    const others = isShared ? [] : portAllocations.sharersOf(place);
    for (const uid of [portAllocations.ownerOf(place) ?? service.uid, ...others])
      if (uid !== service.uid) return ownerText(uid);
  }
  for (const host of isShared ? request.hosts : []) {
    for (const [uid, nodes] of portAllocations.hostOwnersOf(portHostKey(port, host))) {
      if (uid !== service.uid && nodes.has(node.name)) return ownerText(uid);
    }
  }
  return undefined;
}

function listenersFor(node: NodeEntry, port: ServicePort, { service, modes }: PlacementState): ListenerEntry[] {
  return bindAddressesFor(node, service).map((address) => {
    const protocol = port.protocol as Protocol;
    const place = { node: node.name, address, port: port.port, protocol, service: service.uid };
    return modes.get(port) === 'shared'
      ? { kind: 'listener', id: sharedListenerId(place), ...place, shared: true }
      : { kind: 'listener', id: listenerId(place), ...place };
  });
}

/** Undefined: nobody else has it on any of the nodes. */
function portConflictOn(
  nodes: readonly NodeEntry[],
  port: ServicePort,
  request: PlacementState,
): PortConflict | undefined {
  const holders = nodes.map((node) => otherOwnerOn(node, port, request)).filter((holder) => holder !== undefined);
  return holders.length === 0 ? undefined : { port, nodeCount: holders.length, owners: [...new Set(holders)].sort() };
}

function portConflictRefusal(
  nodes: readonly NodeEntry[],
  ports: readonly ServicePort[],
  request: PlacementState,
): StatusReason<RefusalReason> {
  const taken = ports.map((port) => portConflictOn(nodes, port, request)).filter((port) => port !== undefined);
  return { reason: 'PortConflict', message: conflictMessage(taken, nodes.length, request.nodesText) };
}
