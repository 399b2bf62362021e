// Which nodes hold the ports of a Service. The unit that is owned is (node address, protocol, port): who has it keeps it.
import type { ServiceObject, ServicePort } from '../snapshot.ts';
import { type ListenerEntry, listenerId, type NodeEntry, type Protocol } from '../table/entry.ts';
import { bindAddressesFor } from './nodes.ts';
import { conflictMessage, type TakenPort } from './placement-text.ts';
import { portKey } from './port-key.ts';
import type { TakenPorts } from './taken-ports.ts';

export interface Placement {
  readonly listeners: readonly ListenerEntry[];
  /** Sorted by name. */
  readonly nodes: readonly string[];
  /** By port, why it is not served although the others are. */
  readonly conflicts: ReadonlyMap<ServicePort, string>;
}

export type PlacementResult =
  | { readonly kind: 'placed'; readonly placement: Placement }
  /** No node that may be used has an address of the Service's families. */
  | { readonly kind: 'no-nodes' }
  | { readonly kind: 'conflict'; readonly message: string };

export interface PlacementRequest {
  readonly service: ServiceObject;
  /** Those that could be served. */
  readonly ports: readonly ServicePort[];
  /** That may be used, the best first. */
  readonly nodes: readonly NodeEntry[];
  /** How a message calls them together: `the fleet`, `pool "edge"`. */
  readonly where: string;
  /** Of whose nodes nothing new is put: names. */
  readonly cordoned: ReadonlySet<string>;
  /** On so many nodes, as long as there are so many. */
  readonly wanted: number;
  /** Who has which. Placing gives the Service what it gets. */
  readonly taken: TakenPorts;
  /** How a message calls the holder of a port; only what this tenant may know. */
  readonly holderText: (uid: string) => string;
}

/** Places a Service on nodes where all its ports are free; one that is placed keeps its nodes and loses only ports. */
export function place(request: PlacementRequest): PlacementResult {
  const { service, taken, wanted, cordoned } = request;
  const holding = nodesHolding(request.ports, taken.listenersOf(service.uid));
  const able = request.nodes.filter(
    (node) => bindAddressesFor(node, service).length > 0 && (!cordoned.has(node.name) || holding.has(node.name)),
  );
  if (able.length === 0) return { kind: 'no-nodes' };
  const kept = able.filter(({ name }) => holding.has(name));
  const conflicts = new Map<ServicePort, string>();
  for (const port of kept.length > 0 ? request.ports : []) {
    const lost = takenOn(kept, port, request);
    if (lost !== undefined) conflicts.set(port, conflictMessage([lost], kept.length, request.where));
  }
  const ports = request.ports.filter((port) => !conflicts.has(port));
  const chosen = ports.length === 0 ? [] : chosenOf(able, { kept, ports, wanted }, request);
  if (chosen.length === 0) return { kind: 'conflict', message: refusalMessage(able, request) };
  const listeners = chosen.flatMap((node) => ports.flatMap((port) => listenersFor(node, port, service)));
  taken.give(service.uid, listeners);
  return { kind: 'placed', placement: { listeners, nodes: chosen.map((node) => node.name), conflicts } };
}

/** Names of the nodes on which at least one of the ports is held. */
export function nodesHolding(ports: readonly ServicePort[], listeners: readonly ListenerEntry[]): ReadonlySet<string> {
  const wanted = new Set(ports.map(portKey));
  return new Set(listeners.filter((listener) => wanted.has(portKey(listener))).map(({ node }) => node));
}

/** Answers whether a port is one of those of the listeners, of which a node with many addresses makes very many. */
export function heldPorts(listeners: readonly ListenerEntry[]): (port: ServicePort) => boolean {
  const held = new Set(listeners.map(portKey));
  return (port) => held.has(portKey(port));
}

interface Choice {
  readonly kept: readonly NodeEntry[];
  readonly ports: readonly ServicePort[];
  readonly wanted: number;
}

/** Those that it has, then the first that are free, sorted by name. */
function chosenOf(able: readonly NodeEntry[], { kept, ports, wanted }: Choice, request: PlacementRequest): NodeEntry[] {
  const chosen = kept.slice(0, wanted);
  for (const node of able) {
    if (chosen.length === wanted) break;
    const isFree = !kept.includes(node) && ports.every((port) => conflictOn(node, port, request) === undefined);
    if (isFree) chosen.push(node);
  }
  return chosen.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The UID of another Service that has the port on this node. */
function conflictOn(node: NodeEntry, port: ServicePort, { service, taken }: PlacementRequest): string | undefined {
  for (const { id } of listenersFor(node, port, service)) {
    const holder = taken.holderOf(id);
    if (holder !== undefined && holder !== service.uid) return holder;
  }
  return undefined;
}

function listenersFor(node: NodeEntry, port: ServicePort, service: ServiceObject): ListenerEntry[] {
  return bindAddressesFor(node, service).map((address) => {
    const place = { node: node.name, address, port: port.port, protocol: port.protocol as Protocol };
    return { kind: 'listener', id: listenerId(place), ...place, service: service.uid };
  });
}

/** Undefined: nobody else has it on any of the nodes. */
function takenOn(nodes: readonly NodeEntry[], port: ServicePort, request: PlacementRequest): TakenPort | undefined {
  const holders = nodes.map((node) => conflictOn(node, port, request)).filter((uid) => uid !== undefined);
  if (holders.length === 0) return undefined;
  return { port, nodes: holders.length, holders: [...new Set(holders.map(request.holderText))].sort() };
}

function refusalMessage(able: readonly NodeEntry[], request: PlacementRequest): string {
  const taken = request.ports.map((port) => takenOn(able, port, request)).filter((port) => port !== undefined);
  return conflictMessage(taken, able.length, request.where);
}
